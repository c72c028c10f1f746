use proptest::prelude::*;

use super::*;

const PAGE: &str = "# Panel\n\n## Clocks\n\n| clock | at |\n|---|---|\n| tide | 1/6 |\n\n## Notes\n- a: b\n";

#[test]
fn a_section_patch_changes_that_section_only() {
    let patched = patch_section(PAGE, "## Clocks\n\n- none", false).unwrap();
    assert_eq!(patched, "# Panel\n\n## Clocks\n\n- none\n\n## Notes\n- a: b\n");
    assert!(patch_section(PAGE, "## Weather\nfog", false).unwrap_err().message.contains("no heading"));
    assert!(patch_section(PAGE, "## Weather\nfog", true).unwrap().ends_with("## Weather\nfog\n"));
    let open = format!("{PAGE}```\n");
    assert!(patch_section(&open, "## Weather\nfog", true).unwrap_err().message.contains("not closed"));
    assert!(patch_section(PAGE, "## Clocks\nx\n## Notes\ny", false).unwrap_err().message.contains("second section"));
}

#[test]
fn a_table_knows_its_heading_and_its_lines() {
    let table = tables(PAGE).remove(0);
    assert_eq!((table.heading.as_str(), table.line, table.rows[0].line), ("Clocks", 5, 7));
    assert_eq!(table.get(&table.rows[0], "Clock"), "tide");
    assert_eq!(table.get(&table.rows[0], "nothing"), "");
}

#[test]
fn a_heading_in_a_fence_is_text() {
    assert!(section("# A\n```\n## B\n```\n", "B").is_none());
}

proptest! {
    #[test]
    fn any_text_is_read(text in "\\PC{0,80}(\n[#|`: -]{0,6}\\PC{0,20}){0,6}", title in "\\PC{0,8}") {
        let _ = (tables(&text), fields(&text).count(), section(&text, &title));
        let _ = patch_section(&text, &title, true);
        prop_assert!(clip(&text, 5).chars().count() <= 5);
    }
}
