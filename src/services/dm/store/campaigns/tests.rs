use super::*;
use acheron_base::Code;

const AT: &str = "2026-11-16T10:00:00Z";

fn campaigns() -> (tempfile::TempDir, Campaigns) {
    let root = tempfile::tempdir().unwrap();
    let campaigns = Campaigns::open(ConfinedDir::open(root.path()).unwrap(), Default::default());
    (root, campaigns)
}

fn made(campaigns: &Campaigns, id: &str, cartridge: &str) -> Result<()> {
    campaigns.new_campaign(&ChangedBy::no_call(), id, cartridge, 7, AT, &ActResult::default())
}

fn switch(campaigns: &Campaigns, id: &str) -> Result<()> {
    campaigns.switch(&ChangedBy::no_call(), id, &ActResult::default())
}

#[test]
fn rows_24_to_27_making_and_switching() {
    let (root, campaigns) = campaigns();
    assert_eq!(campaigns.active().unwrap(), ActiveCampaign::default());
    made(&campaigns, "campaign_0002", "brinewick").unwrap();
    let active = || std::fs::read_to_string(root.path().join("ACTIVE.md")).unwrap();
    assert_eq!(active(), "active_campaign: campaign_0002\npath: campaigns/campaign_0002\n", "row 24");
    let again = made(&campaigns, "campaign_0002", "brinewick").unwrap_err();
    assert_eq!(again.message, "destination already exists: campaigns/campaign_0002", "row 25");
    for (row, id) in [("26", "../x"), ("26a", ""), ("26b", "a/b"), ("26c", ".hidden")] {
        assert_eq!(made(&campaigns, id, "brinewick").unwrap_err().code, Code::Forbidden, "row {row}");
    }
    assert_eq!(made(&campaigns, "_template", "brinewick").unwrap_err().code, Code::ReadOnly);
    assert_eq!(made(&campaigns, "c3", "nowhere").unwrap_err().code, Code::NotFound);
    assert_eq!(campaigns.campaigns().unwrap(), ["campaign_0002"], "row 26: nothing was created");
    assert_eq!(switch(&campaigns, "none").unwrap_err().message, "campaign not found: campaigns/none", "row 27");
    made(&campaigns, "other", "brinewick").unwrap();
    switch(&campaigns, "campaign_0002").unwrap();
    assert!(active().contains("campaign_0002"), "a switch that fails changes nothing");
    std::fs::remove_file(root.path().join("campaigns/other/STATE_PANEL.json")).unwrap();
    assert!(switch(&campaigns, "other").unwrap_err().message.contains("layout invalid; missing: STATE_PANEL.json"));
    assert!(active().contains("campaign_0002"), "a campaign that is not whole is not switched to");
}

#[test]
fn rows_136_and_137_the_pointer_and_the_lock() {
    let (root, campaigns) = campaigns();
    made(&campaigns, "c1", "brinewick").unwrap();
    for (row, text) in
        [("136", "active_campaign: c1\npath: campaigns/c1\n"), ("136a", "active_campaign: campaigns/c1\n")]
    {
        std::fs::write(root.path().join("ACTIVE.md"), text).unwrap();
        let active = campaigns.active().unwrap();
        assert_eq!(
            (active.campaign.as_deref(), active.cartridge.as_deref()),
            (Some("c1"), Some("brinewick")),
            "row {row}"
        );
    }
    let page = root.path().join("campaigns/c1/CAMPAIGN.md");
    let text = std::fs::read_to_string(&page).unwrap();
    for (lock, fits) in
        [("0.1.x", false), ("1.0.0", false), ("1.0.2", false), ("1.0.3", false), ("1.0.4", true), ("1.0.x", true)]
    {
        std::fs::write(&page, text.replace("1.0.x", lock)).unwrap();
        let answer = switch(&campaigns, "c1");
        assert_eq!(answer.is_ok(), fits, "row 137: {lock}");
        if let Err(fault) = answer {
            assert!(fault.message.starts_with("version_lock mismatch"), "row 137");
        }
    }
}

#[test]
fn a_faulty_cartridge_is_refused_with_its_line() {
    let (_root, campaigns) = campaigns();
    let clocks = "# Clocks\n\n| clock | segments |\n|---|---|\n| tide | many |\n";
    let written = Files::from([("lore/MECHANICS/CLOCKS.md".to_owned(), clocks.to_owned())]);
    let written = BTreeMap::from([("brinewick".to_owned(), written)]);
    campaigns.write_cartridges(&ChangedBy::no_call(), written, &ActResult::default()).unwrap();
    let refused = made(&campaigns, "c1", "brinewick").unwrap_err().message;
    assert!(refused.contains("lore/MECHANICS/CLOCKS.md:5: a clock has 1 to 24 segments"), "{refused}");
}
