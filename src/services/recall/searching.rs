//! Searching a wiki: its index on the disk chooses candidates, their texts are ranked. `service` and the turns use it.

use super::page_index::Candidates;
use super::wiki::Wiki;
use acheron_base::Result;
use acheron_recall::index::Page;
use acheron_recall::page::body;
use acheron_recall::resolve::Access;
use acheron_recall::search::{Hit, Question, snippet};

/// How much of a long page is looked at closely.
const CLOSELY: usize = 128 << 10;

impl Wiki {
    /// The best pages for a question. Waits until all pages have been read.
    pub fn search(&self, query: &str, access: Access, limit: usize) -> Result<Vec<Hit>> {
        self.progress.wait();
        let all = access == Access::Raw;
        let (pages, words) = {
            let index = self.index();
            (index.len() as u64, index.words())
        };
        let Candidates { counts, paths } = self.disk.candidates(Question::asked(query), all, pages)?;
        let question = Question::new(counts, pages, words);
        let mut hits = Vec::new();
        for path in paths {
            let page = self.index().page(&path).cloned();
            let (Some(page), Ok(text)) = (page, self.text(&path)) else { continue };
            let end = (0..=CLOSELY.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            hits.push(question.hit(&page, &text[..end]));
        }
        let visible = |page: &Page| all || !page.class.excluded();
        let mut hits = self.index().ranked(hits, limit, &visible);
        for hit in &mut hits {
            hit.snippet = self.text(&hit.path).map(|text| snippet(body(&text), query)).unwrap_or_default();
        }
        Ok(hits)
    }
}
