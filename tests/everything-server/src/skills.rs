//! A skill of files, and one that is made when it is read.

use mcp_suite::{
    Context, ServerBuilder, ToolError,
    skills::{Frontmatter, SkillFiles, Skills},
};

/// Adds both.
pub(crate) fn add_to(builder: ServerBuilder) -> ServerBuilder {
    let daily = Frontmatter::new("daily", "Assemble today's report");
    let skills = Skills::builder().skill(pdf_processing()).dynamic("reports", daily, report).build();
    builder.with(skills.expect("they keep the rules"))
}

fn pdf_processing() -> SkillFiles {
    macro_rules! file {
        ($path:literal) => {
            include_str!(concat!("../skills/pdf-processing/", $path))
        };
    }
    SkillFiles::new(file!("SKILL.md"))
        .file("references/FORMS.md", file!("references/FORMS.md"))
        .file("templates/invoice.md", file!("templates/invoice.md"))
        .file("templates/regional/eu-invoice.md", file!("templates/regional/eu-invoice.md"))
}

async fn report(_: Context) -> Result<String, ToolError> {
    Ok("Say that nothing is out of order.\n".into())
}
