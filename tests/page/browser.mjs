// Starts Chromium, runs one scenario, and ends with 1 if it failed or if the page complained.
// usage: node browser.mjs SCENARIO '{"url", "browser", "packages", "pictures", "docs"}'

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { scenarios } from "./scenarios.mjs";

const [scenario, told] = [process.argv[2], JSON.parse(process.argv[3])];
const require = createRequire(`${told.packages}/`);
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/** Asks the test for something on the side of the host. */
async function ask(what) {
  console.log(`ASK ${JSON.stringify(what)}`);
  return JSON.parse((await lines.next()).value);
}

const browser = await chromium.launch({ executablePath: told.browser, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
const complaints = [];

/** A browser of its own, logged in unless told otherwise. What it says on its console and asks elsewhere is written down. */
async function visit({ width = 1280, height = 800, scheme = "light", agent, login = true, checked = false, expected = [] } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, bypassCSP: checked, reducedMotion: "reduce" });
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  const complain = (what) => expected.some((pattern) => pattern.test(what)) || complaints.push(what);
  page.on("console", (message) => message.type() === "error" && complain(`console: ${message.text()} at ${message.location().url}`));
  page.on("pageerror", (error) => complain(`error: ${error.stack}`));
  page.on("dialog", (dialog) => {
    complain(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => request.url().startsWith(told.url) || request.url().startsWith("data:") || complain(`asked elsewhere: ${request.url()}`));
  if (login) {
    await page.goto(await ask({ do: "login", agent }));
    await page.waitForSelector(".connection.live");
  }
  return page;
}

/** The pictures that the documents show. */
const SHOWN = ["needs-light", "chat-light", "tree-dark", "list-phone"];

async function picture(page, name) {
  await page.screenshot({ path: `${told.pictures}/${name}.png` });
  if (told.docs && SHOWN.includes(name)) await page.screenshot({ path: `${told.docs}/${name}.png` });
}

/** Fails if axe finds a violation. */
async function accessible(page, where) {
  await page.evaluate(axe);
  const found = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  for (const { id, help, nodes } of found.violations) complaints.push(`axe at ${where}: ${id}: ${help}: ${nodes.slice(0, 3).map((node) => node.html).join(" | ")}`);
}

function check(so, what) {
  if (!so) throw new Error(what);
}

function same(found, expected, what) {
  check(JSON.stringify(found) === JSON.stringify(expected), `${what}: ${JSON.stringify(found)}, expected ${JSON.stringify(expected)}`);
}

/** Waits until something in the page is so. */
async function until(page, so, argument) {
  await page.waitForFunction(so, argument, { polling: 50, timeout: 30_000 });
}

let failed = false;
let last;
try {
  const given = { ask, visit, accessible, check, same, until, told, sh: (script) => ask({ do: "sh", script }), picture };
  await scenarios[scenario](given);
} catch (error) {
  failed = true;
  console.log(error.stack);
  for (const context of browser.contexts()) {
    for (const page of context.pages()) {
      last = page;
      console.log(`at ${page.url()}`);
      await page.screenshot({ path: `${told.pictures}/failed-${scenario}.png` }).catch(() => {});
      console.log((await page.locator("main").innerText().catch(() => "")).slice(0, 2000));
    }
  }
}
complaints.forEach((complaint) => console.log(complaint));
await browser.close();
process.exit(failed || complaints.length ? 1 : 0);
