//! `poll`, `select` and `epoll`: told when a read would not wait.

use expect_test::{Expect, expect};

use crate::common::python;
use crate::workshop::Workshop;

const PRELUDE: &str = r#"
import os, select, threading, time
def write(words, pause=0.0):
    time.sleep(pause)
    fd = os.open("control/echo.json", os.O_WRONLY)
    os.write(fd, words.encode())
    os.close(fd)
def later(words): threading.Thread(target=write, args=(words, 0.05)).start()
def answer(fd):
    said = b""
    while part := os.read(fd, 4): said += part
    return said.decode().strip()
LONG = 60
"#;

#[track_caller]
fn check(script: &str, expect: Expect) {
    let shop = Workshop::open();
    expect.assert_eq(&python(shop.root(), &format!("{PRELUDE}{script}")));
}

#[test]
fn what_is_not_settled_is_not_readable() {
    check(
        r#"
fd = os.open("waiting.json", os.O_RDONLY)
p = select.poll(); p.register(fd, select.POLLIN)
print(p.poll(0), select.select([fd], [], [], 0)[0])
later('{"op":"settle"}')
print([event == select.POLLIN for _, event in p.poll(LONG * 1000)])
print(os.read(fd, 100))
print(len(p.poll(0)), select.select([fd], [], [], 0)[0] == [fd])
write('{"op":"unsettle"}')
print(p.poll(0))
"#,
        expect![[r#"
            [] []
            [True]
            b'{"said":{"op":"settle"}}\n'
            1 True
            []
        "#]],
    );
}

#[test]
fn select_and_epoll_wake() {
    check(
        r#"
fd = os.open("waiting.json", os.O_RDONLY); other = os.open("waiting.json", os.O_RDONLY)
r, w = os.pipe()
later('{"op":"settle"}')
print(select.select([fd, other, r], [], [], LONG)[0] != [])
write('{"op":"unsettle"}')
for kind in (0, select.EPOLLET):
    e = select.epoll(); e.register(fd, select.EPOLLIN | kind); e.register(other, select.EPOLLIN | kind)
    print(e.poll(0))
    later('{"op":"settle"}')
    seen = set()
    while len(seen) < 2: seen |= {f for f, _ in e.poll(LONG)}
    print(seen == {fd, other})
    write('{"op":"unsettle"}')
    print(e.poll(0))
    e.close()
"#,
        expect![[r#"
            True
            []
            True
            []
            []
            True
            []
        "#]],
    );
}

#[test]
fn each_answer_on_a_handle_is_an_edge() {
    check(
        r#"
fd = os.open("control/echo.json", os.O_RDWR | os.O_NONBLOCK)
e = select.epoll(); e.register(fd, select.EPOLLIN | select.EPOLLET)
print(len(e.poll(0)))
for n in range(3): os.write(fd, b'{"op":"wait","n":%d}' % n)
e.poll(0)
for n in range(3):
    print(e.poll(0))
    write('{"op":"fire"}')
    print(len(e.poll(LONG)), answer(fd))
"#,
        expect![[r#"
            1
            []
            1 {"said":{"op":"wait","n":0}}
            []
            1 {"said":{"op":"wait","n":1}}
            []
            1 {"said":{"op":"wait","n":2}}
        "#]],
    );
}

#[test]
fn answers_that_are_there_together_are_edges_one_by_one() {
    check(
        r#"
fd = os.open("control/echo.json", os.O_RDWR | os.O_NONBLOCK)
e = select.epoll(); e.register(fd, select.EPOLLIN | select.EPOLLET)
for n in range(3): os.write(fd, b'{"op":"wait","n":%d}' % n)
for n in range(3): write('{"op":"fire"}')
for n in range(3): print(len(e.poll(LONG)), answer(fd))
os.write(fd, b'{"op":"echo"}')
while not (said := len(e.poll(LONG)) and answer(fd)): pass
print(said)
"#,
        expect![[r#"
            1 {"said":{"op":"wait","n":0}}
            1 {"said":{"op":"wait","n":1}}
            1 {"said":{"op":"wait","n":2}}
            {"said":{"op":"echo"}}
        "#]],
    );
}

#[test]
fn what_is_written_can_be_written_at_any_time() {
    check(
        r#"
fd = os.open("control/echo.json", os.O_RDWR)
p = select.poll(); p.register(fd, select.POLLIN | select.POLLOUT)
os.write(fd, b'{"op":"wait"}')
print([event == select.POLLOUT for _, event in p.poll(0)])
write('{"op":"fire"}')
p.modify(fd, select.POLLIN)
print([event == select.POLLIN for _, event in p.poll(LONG * 1000)], answer(fd))
t = os.open("text.md", os.O_RDONLY)
print(select.select([t], [], [], 0)[0] == [t])
"#,
        expect![[r#"
            [True]
            [True] {"said":{"op":"wait"}}
            True
        "#]],
    );
}

#[test]
fn closing_what_is_polled_leaves_nothing_behind() {
    let shop = Workshop::open();
    let script = r#"
for _ in range(200):
    fd = os.open("waiting.json", os.O_RDONLY)
    p = select.poll(); p.register(fd, select.POLLIN); p.poll(0)
    e = select.epoll(); e.register(fd, select.EPOLLIN | select.EPOLLET)
    os.close(fd)
print("closed")
"#;
    assert_eq!(python(shop.root(), &format!("{PRELUDE}{script}")), "closed\n");
    crate::common::until("nothing is open", || shop.mount.open_handles() == 0);
    assert_eq!(shop.knobs.settled.receiver_count(), 0);
}
