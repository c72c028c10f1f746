use proptest::prelude::*;

use super::*;

fn kind(text: &str) -> AddressKind {
    AddressKind::of(text.parse().unwrap())
}

#[test]
fn every_range_that_is_not_the_public_internet_is_known() {
    let cases = [
        ("93.184.216.34", AddressKind::Public),
        ("127.0.0.1", AddressKind::Loopback),
        ("127.255.255.254", AddressKind::Loopback),
        ("0.0.0.0", AddressKind::Reserved),
        ("10.255.0.1", AddressKind::Private),
        ("172.15.0.1", AddressKind::Public),
        ("172.16.0.1", AddressKind::Private),
        ("172.31.255.255", AddressKind::Private),
        ("172.32.0.1", AddressKind::Public),
        ("192.168.1.1", AddressKind::Private),
        ("169.254.1.1", AddressKind::LinkLocal),
        ("169.254.169.254", AddressKind::Metadata),
        ("168.63.129.16", AddressKind::Metadata),
        ("100.64.0.1", AddressKind::Shared),
        ("100.128.0.1", AddressKind::Public),
        ("100.100.100.200", AddressKind::Metadata),
        ("192.0.0.192", AddressKind::Metadata),
        ("198.18.0.1", AddressKind::Reserved),
        ("224.0.0.1", AddressKind::Multicast),
        ("255.255.255.255", AddressKind::Reserved),
        ("::1", AddressKind::Loopback),
        ("::", AddressKind::Reserved),
        ("2606:2800:220:1::1", AddressKind::Public),
        ("fd12::1", AddressKind::Private),
        ("fd00:ec2::254", AddressKind::Metadata),
        ("fe80::1", AddressKind::LinkLocal),
        ("fec0::1", AddressKind::Private),
        ("ff02::1", AddressKind::Multicast),
        ("2001:db8::1", AddressKind::Reserved),
        ("2001:0:1::1", AddressKind::Reserved),
        ("64:ff9b:1::7f00:1", AddressKind::Reserved),
        ("4000::1", AddressKind::Reserved),
    ];
    for (text, expected) in cases {
        assert_eq!(kind(text), expected, "{text}");
    }
}

proptest! {
    #[test]
    fn an_address_in_another_is_of_the_same_kind(bytes: [u8; 4]) {
        let inner = Ipv4Addr::from(bytes);
        let plain = AddressKind::of(inner.into());
        let [a, b, c, d] = bytes.map(u16::from);
        let (high, low) = (a << 8 | b, c << 8 | d);
        let mapped = Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, high, low);
        let translated = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low);
        let to_four = Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1);
        for outer in [mapped, translated, to_four] {
            prop_assert_eq!(AddressKind::of(outer.into()), plain, "{}", outer);
        }
    }
}
