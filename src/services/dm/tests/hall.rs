use super::*;
use acheron_base::Code;

const AT: &str = "2026-11-16T10:00:00Z";

fn hall() -> (tempfile::TempDir, Hall) {
    let root = tempfile::tempdir().unwrap();
    let hall = Hall::open(ConfinedDir::open(root.path()).unwrap());
    (root, hall)
}

#[test]
fn rows_24_to_27_making_and_switching() {
    let (root, hall) = hall();
    assert_eq!(hall.active().unwrap(), Active::default());
    hall.new_campaign("campaign_0002", "brinewick", 7, AT).unwrap();
    let active = || std::fs::read_to_string(root.path().join("ACTIVE.md")).unwrap();
    assert_eq!(active(), "active_campaign: campaign_0002\npath: campaigns/campaign_0002\n", "row 24");
    let again = hall.new_campaign("campaign_0002", "brinewick", 7, AT).unwrap_err();
    assert_eq!(again.message, "destination already exists: campaigns/campaign_0002", "row 25");
    for (row, id) in [("26", "../x"), ("26a", ""), ("26b", "a/b"), ("26c", ".hidden")] {
        assert_eq!(hall.new_campaign(id, "brinewick", 7, AT).unwrap_err().code, Code::Forbidden, "row {row}");
    }
    assert_eq!(hall.new_campaign("_template", "brinewick", 7, AT).unwrap_err().code, Code::ReadOnly);
    assert_eq!(hall.new_campaign("c3", "nowhere", 7, AT).unwrap_err().code, Code::NotFound);
    assert_eq!(hall.campaigns().unwrap(), ["campaign_0002"], "row 26: nothing was created");
    assert_eq!(hall.switch("none").unwrap_err().message, "campaign not found: campaigns/none", "row 27");
    hall.new_campaign("other", "brinewick", 7, AT).unwrap();
    hall.switch("campaign_0002").unwrap();
    assert!(active().contains("campaign_0002"), "a switch that fails changes nothing");
    std::fs::remove_file(root.path().join("campaigns/other/STATE_PANEL.json")).unwrap();
    assert!(hall.switch("other").unwrap_err().message.contains("layout invalid; missing: STATE_PANEL.json"));
    assert!(active().contains("campaign_0002"), "a campaign that is not whole is not switched to");
}

#[test]
fn rows_136_and_137_the_pointer_and_the_lock() {
    let (root, hall) = hall();
    hall.new_campaign("c1", "brinewick", 7, AT).unwrap();
    for (row, text) in
        [("136", "active_campaign: c1\npath: campaigns/c1\n"), ("136a", "active_campaign: campaigns/c1\n")]
    {
        std::fs::write(root.path().join("ACTIVE.md"), text).unwrap();
        let active = hall.active().unwrap();
        assert_eq!(
            (active.campaign.as_deref(), active.cartridge.as_deref()),
            (Some("c1"), Some("brinewick")),
            "row {row}"
        );
    }
    let page = root.path().join("campaigns/c1/CAMPAIGN.md");
    let text = std::fs::read_to_string(&page).unwrap();
    for (lock, fits) in [("0.1.x", false), ("1.0.0", true), ("1.0.x", true)] {
        std::fs::write(&page, text.replace("1.0.x", lock)).unwrap();
        let answer = hall.switch("c1");
        assert_eq!(answer.is_ok(), fits, "row 137: {lock}");
        if let Err(fault) = answer {
            assert!(fault.message.starts_with("version_lock mismatch"), "row 137");
        }
    }
}

#[test]
fn our_cartridges_are_whole() {
    let (_root, hall) = hall();
    let world = hall.cartridge("brinewick").unwrap();
    assert_eq!(world.faults, []);
    let count = |kind| world.of(kind).count();
    use super::super::super::world::Kind as Of;
    assert!(count(Of::Loc) >= 8 && count(Of::Npc) >= 8 && count(Of::Quest) >= 4 && world.indicators.len() >= 4);
    assert_eq!(world.map.nodes.len(), count(Of::Loc));
    assert_eq!(world.routes.len(), 7);
    assert!(world.quests.iter().all(|quest| quest.main || world.object(&quest.return_to).is_some()));
    let blank = CARTRIDGES.get_dir("_template").unwrap();
    let blank = load::cartridge(&embedded(blank)).unwrap();
    assert_eq!(blank.faults, []);
    assert_eq!(hall.cartridges().unwrap(), ["brinewick"], "the template is not for playing");
}

#[test]
fn a_faulty_cartridge_is_refused_with_its_line() {
    let (_root, hall) = hall();
    hall.write_cartridge(
        "brinewick",
        "lore/MECHANICS/CLOCKS.md",
        "# Clocks\n\n| clock | segments |\n|---|---|\n| tide | many |\n",
    )
    .unwrap();
    let refused = hall.new_campaign("c1", "brinewick", 7, AT).unwrap_err().message;
    assert!(refused.contains("lore/MECHANICS/CLOCKS.md:5: a clock has 1 to 24 segments"), "{refused}");
}
