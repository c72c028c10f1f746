//! The page of a request: plain HTML without scripts. Everything in it is escaped: it comes from agents. Pure.

use serde_json::Value;

use acheron_base::Error;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:44em;margin:2em auto;padding:0 1em}\
pre{background:#f4f4f4;padding:.7em;overflow-x:auto;white-space:pre-wrap;word-break:break-word}\
button{font:inherit;padding:.5em 1em;margin:.2em .3em .2em 0}input{font:inherit;padding:.4em;width:100%;box-sizing:border-box}\
@media(prefers-color-scheme:dark){body{background:#111;color:#eee}pre{background:#222}}";

fn word<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

/// Text as HTML. Characters that cannot be seen, or that turn the direction of writing, are shown by their numbers.
fn text(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            '\n' | '\t' => html.push(letter),
            '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' => {
                html.push_str(&format!("\\u{:04x}", letter as u32));
            }
            letter if letter.is_control() => html.push_str(&format!("\\u{:04x}", letter as u32)),
            letter => html.push(letter),
        }
    }
    html
}

fn document(title: &str, body: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <meta name=\"robots\" content=\"noindex\"><title>{}</title><style>{STYLE}</style><body>{body}</body></html>\n",
        text(title)
    )
}

/// The page of a request: with the form as long as it waits.
pub fn request(request: &Value, id: &str, signature: &str) -> String {
    let mut body = format!("<h1>{} asks</h1><p>{}</p>", text(word(request, "agent")), text(word(request, "summary")));
    body.push_str(&format!("<h2>What would be done</h2><pre>{}</pre>", text(&format!("{:#}", request["subject"]))));
    let risks = request["risk"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let risks: String = risks.map(|risk| format!("<li>{}</li>", text(risk))).collect();
    if !risks.is_empty() {
        body.push_str(&format!("<ul>{risks}</ul>"));
    }
    if let Some(reason) = request["stated_reason"].as_str() {
        body.push_str(&format!("<p>The model says: <q>{}</q></p>", text(reason)));
    }
    body.push_str(&format!("<p>Asked by the rule</p><pre>{}</pre>", text(&request["matched_rule"].to_string())));
    match word(request, "state") {
        "waiting" => body.push_str(&form(request, id, signature)),
        state => {
            body.push_str(&format!("<p><strong>{}</strong>: there is nothing to decide any more.</p>", text(state)));
        }
    }
    document("A request for approval", &body)
}

fn form(request: &Value, id: &str, signature: &str) -> String {
    let hidden = |name: &str, value: &str| format!("<input type=\"hidden\" name=\"{name}\" value=\"{}\">", text(value));
    let mut form = String::from("<form method=\"post\" action=\"/approve\">");
    form.push_str(&hidden("id", id));
    form.push_str(&hidden("t", signature));
    form.push_str(&hidden("sha256", word(request, "subject_sha256")));
    for offer in request["offers"].as_array().into_iter().flatten() {
        let answer = word(offer, "answer");
        let (value, shown) = if answer.starts_with("deny") { ("deny", "deny") } else { (answer, answer) };
        let writes = if offer["writes"].is_null() { String::new() } else { format!(": {}", offer["writes"]) };
        form.push_str(&format!(
            "<p><button name=\"decision\" value=\"{}\">{}</button> {}{}</p>",
            text(value),
            text(shown),
            text(word(offer, "does")),
            text(&writes)
        ));
    }
    form.push_str("<p><label>Reason of a denial <input name=\"reason\" maxlength=\"1000\"></label></p></form>");
    form
}

/// The page after an answer: what was decided, and about what.
pub fn outcome(status: &Value) -> String {
    let body = format!("<h1>{}</h1><p>{}</p>", text(word(status, "state")), text(word(status, "summary")));
    document("Decided", &body)
}

/// The page of a refusal.
pub fn refusal(error: &Error) -> String {
    document("Not decided", &format!("<h1>Not decided</h1><p>{}</p>", text(&error.message)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_that_an_agent_says_is_html_and_what_cannot_be_seen_is_shown() {
        let evil = "</pre><script>alert(1)</script>\u{202e}\u{1b}";
        let asked = json!({"agent": evil, "summary": evil, "subject": {"arguments": {"x": evil}}, "risk": [evil],
            "stated_reason": evil, "state": "waiting", "subject_sha256": "ab", "matched_rule": {"path": evil},
            "offers": [{"answer": "allow", "does": evil}, {"answer": "deny: reason", "does": ""}]});
        let page = request(&asked, "apr-1", "\"><script>");
        assert!(!page.contains("<script") && !page.contains('\u{202e}') && !page.contains('\u{1b}'), "{page}");
        assert!(page.contains("value=\"deny\">deny</button>") && page.contains("name=\"sha256\" value=\"ab\""));
        let decided = json!({"agent": "a", "state": "denied", "offers": []});
        assert!(!request(&decided, "apr-1", "x").contains("<form"));
    }
}
