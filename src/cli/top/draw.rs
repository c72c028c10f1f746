//! Draws the screen of `acheron top`. Takes any size of terminal.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, Paragraph, Row, Table, TableState};

use super::super::plain_text::{one_line, plain};
use super::super::table::{money, short_count, span};
use super::screen::{TopList, TopScreen};
use crate::host::overview::{AgentOverview, JobOverview};

/// The rows of agents and of approvals that are shown at most.
const AGENTS: usize = 12;
const APPROVALS: usize = 6;

pub fn draw(screen: &mut TopScreen, frame: &mut Frame<'_>) {
    let rows = |count: usize, most: usize| u16::try_from(count.min(most)).unwrap_or(0);
    let agents = screen.host.as_ref().map_or(0, |host| host.agents.len());
    let approvals = match screen.approvals.len() {
        0 => 0,
        count => rows(count, APPROVALS) + 1,
    };
    let [head, agents_at, approvals_at, jobs_at, lines_at, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(rows(agents, AGENTS) + 1),
        Constraint::Length(approvals),
        Constraint::Fill(2),
        Constraint::Fill(3),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(head_line(screen)).style(Style::new().add_modifier(Modifier::REVERSED)), head);
    draw_agents(screen, frame, agents_at);
    if approvals > 0 {
        draw_approvals(screen, frame, approvals_at);
    }
    draw_jobs(screen, frame, jobs_at);
    draw_lines(screen, frame, lines_at);
    frame.render_widget(Paragraph::new(shown(&screen.footer())).style(Style::new().add_modifier(Modifier::BOLD)), foot);
}

/// Texts of agents must not move the cursor.
fn shown(text: &str) -> String {
    plain(&one_line(text))
}

fn head_line(screen: &TopScreen) -> String {
    let Some(host) = &screen.host else { return "acheron top: asking the host".to_owned() };
    let up = span(host.now_ms.saturating_sub(host.started_at_ms));
    let (tokens, paid) = host.agents.iter().fold((0, 0.0), |(tokens, paid), agent| {
        (tokens + agent.spent.usage.input + agent.spent.usage.output, paid + agent.spent.money)
    });
    let place = host.mountpoint.as_deref().map_or_else(|| "no mount".to_owned(), |path| path.display().to_string());
    let paid = if paid > 0.0 { format!("  money {}", money(paid)) } else { String::new() };
    let (jobs, rate) = (host.jobs.len() + host.more_jobs, screen.calls_per_second);
    let text = format!("{place}  up {up}  {rate:.1} calls/s  jobs {jobs}  tokens {}{paid}", short_count(tokens));
    shown(&text)
}

fn heading<const N: usize>(names: [&'static str; N]) -> Row<'static> {
    Row::new(names).style(Style::new().add_modifier(Modifier::UNDERLINED))
}

fn draw_agents(screen: &TopScreen, frame: &mut Frame<'_>, area: Rect) {
    let agents = screen.host.as_ref().map_or(&[][..], |host| &host.agents);
    // Those that do something come first.
    let mut listed: Vec<&AgentOverview> = agents.iter().collect();
    listed.sort_by_key(|agent| (agent.state == "idle" && agent.running == 0, agent.agent_id.clone()));
    let rows = listed.iter().take(AGENTS).map(|agent| {
        let usage = agent.spent.usage;
        let jobs = agent.running + agent.queued;
        let tokens = format!("{}/{}", short_count(usage.input), short_count(usage.output));
        Row::new([
            shown(&agent.agent_id),
            shown(&agent.state),
            jobs.to_string(),
            tokens,
            money(agent.spent.money),
            shown(&agent.model),
        ])
    });
    let widths = [
        Constraint::Min(10),
        Constraint::Length(8),
        Constraint::Length(4),
        Constraint::Length(12),
        Constraint::Length(9),
        Constraint::Fill(1),
    ];
    let table = Table::new(rows, widths).header(heading(["AGENT", "STATE", "JOBS", "TOKENS", "MONEY", "MODEL"]));
    frame.render_widget(table, area);
}

fn selection(screen: &TopScreen, list: TopList) -> (TableState, Style) {
    let row = screen.row().filter(|_| screen.list == list);
    (TableState::default().with_selected(row), Style::new().add_modifier(Modifier::REVERSED))
}

fn draw_approvals(screen: &TopScreen, frame: &mut Frame<'_>, area: Rect) {
    let rows = screen.approvals.iter().map(|one| Row::new([shown(&one.agent), shown(&one.summary)]));
    let (mut state, chosen) = selection(screen, TopList::Approvals);
    let table = Table::new(rows, [Constraint::Length(12), Constraint::Fill(1)]);
    let table = table.header(heading(["APPROVE?", "WHAT"])).row_highlight_style(chosen);
    frame.render_stateful_widget(table, area, &mut state);
}

fn draw_jobs(screen: &TopScreen, frame: &mut Frame<'_>, area: Rect) {
    let now_ms = screen.host.as_ref().map_or(0, |host| host.now_ms);
    let row = |job: &JobOverview| {
        let what = format!("{}.{}", job.service, job.operation);
        let age = span(now_ms.saturating_sub(job.started_at_ms.unwrap_or(job.created_at_ms)));
        Row::new([shown(&what), shown(&job.agent), job.state.name().to_owned(), age, shown(&job.job_id)])
    };
    let (mut state, chosen) = selection(screen, TopList::Jobs);
    let widths =
        [Constraint::Fill(3), Constraint::Fill(2), Constraint::Length(8), Constraint::Length(4), Constraint::Fill(3)];
    let table = Table::new(screen.jobs().iter().map(row), widths);
    let table = table.header(heading(["JOB", "AGENT", "STATE", "AGE", "ID"])).row_highlight_style(chosen);
    frame.render_stateful_widget(table, area, &mut state);
}

fn draw_lines(screen: &TopScreen, frame: &mut Frame<'_>, area: Rect) {
    let block = Block::new().borders(Borders::TOP).title("log");
    let room = usize::from(block.inner(area).height);
    let lines = screen.lines.iter().rev().take(room).map(|line| Line::raw(shown(&line.short())));
    let lines: Vec<Line<'_>> = lines.collect::<Vec<_>>().into_iter().rev().collect();
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

#[cfg(test)]
mod tests;
