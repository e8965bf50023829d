#![no_main]

use mcp_skills::{Frontmatter, Skill, SkillFiles, Skills};

// What a server says of its skills, and the files themselves, may be anything.
libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(frontmatter) = Frontmatter::parse(text) {
        assert!(serde_json::to_string(&frontmatter).is_ok());
    }
    if let Ok(skill) = serde_json::from_str::<Skill>(text)
        && skill.check().is_ok()
    {
        assert!(!skill.root().is_empty());
        let _ = (skill.check_size(), skill.fingerprint());
    }
    if let Ok(skills) = Skills::builder().skill(SkillFiles::new(text).file("a/b", text)).build() {
        assert!(skills.entries().iter().all(|entry| entry.check().is_ok()));
    }
});
