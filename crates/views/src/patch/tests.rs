use std::fs;

use crate::test_view::{TestView, picture, sh};

/// A patch that git applies to a copy of the base gives the view.
fn applies(base: &str, work: &str) -> String {
    let view = TestView::of(base);
    let copy = view.place.path().join("copy");
    sh(view.place.path(), "cp -a base copy");
    view.run(work);
    let changes = view.changes();
    let patch = super::patch(&view.layers(), &changes.changes).unwrap();
    let file = view.place.path().join("diff.patch");
    fs::write(&file, &patch).unwrap();
    let text = String::from_utf8_lossy(&patch).into_owned();
    sh(&copy, "git apply --whitespace=nowarn ../diff.patch");
    // Git knows no empty directories, and of the modes only whether a file can be run.
    let picture = |dir| -> String {
        let all = picture(dir);
        all.lines().filter(|line| !line.contains(" d ")).map(|line| format!("{line}\n")).collect()
    };
    assert_eq!(picture(&copy), picture(&view.dirs.at), "{text}");
    sh(&copy, "git apply -R --whitespace=nowarn ../diff.patch");
    assert_eq!(picture(&copy), picture(&view.dirs.base), "{text}");
    text
}

#[test]
fn git_applies_the_patch_of_every_kind_of_change_and_its_reverse() {
    applies(
        "mkdir -p src/deep gone; seq 100 > src/a; printf 'no end' > src/b; echo 3 > src/deep/c; seq 9 > gone/x; ln -s src/a link
         echo t > tofile; printf 'a\\000b' > bin; printf 'a\\rb\\r\\nc\\n' > returns; echo run > run; echo 1 > 'with space'; : > none",
        "sed -i 's/^50$/fifty/; 3d; $ a last' src/a; echo end > src/b; rm -r gone; ln -sfn src/deep link; rm tofile; ln -s run tofile
         head -c 70000 /dev/urandom > bin; head -c 300 /dev/zero > bin2; printf 'a\\rb\\rd\\nc' > returns; chmod 755 run
         mv src/deep src/deeper; echo 2 > 'with space'; mkdir nd; : > nd/empty; rm none; printf 'x\\n' > \"$(printf 'q\\t\"\\\\u\\303\\244\\nz')\"",
    );
}

#[test]
fn a_patch_reads_as_git_writes_it() {
    let text = applies("printf '1\\n2\\n3\\n' > a; echo b > b", "printf '1\\n2\\nthree' > a; mv b c");
    assert_eq!(
        text,
        "diff --git a/a b/a\n\
         index 01e79c32a8c99c557f0757da7cb6d65b3414466d..7f3ae779113defb81cdaf1ff84305f24b2d747de 100644\n\
         --- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n 1\n 2\n-3\n+three\n\\ No newline at end of file\n\
         diff --git a/b b/c\nsimilarity index 100%\nrename from b\nrename to c\n"
    );
}
