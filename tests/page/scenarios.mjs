// What people do with the page. Each function is one test of `panels.rs`, which says what the host is like.

const REPLY = (text) => JSON.stringify({ tool_calls: [{ name: "file_write", arguments: { path: "agents/self/chat/control/reply", content: text } }] });
const CALL = (name, given) => JSON.stringify({ tool_calls: [{ name, arguments: given }] });

async function go(page, hash) {
  await page.evaluate((hash) => (location.hash = hash), hash);
}

async function answer(ask, text) {
  await ask({ do: "say", text });
  await ask({ do: "end" });
}

export const scenarios = {
  /** Every panel opens by the keyboard, without a complaint, in light, in dark and on a phone; pictures are made. */
  async panels({ ask, visit, accessible, check, sh, picture, until }) {
    await sh(`cd agents/charon; echo 'How far is it to the other side?' > chat/control/input`);
    await answer(ask, `<think>The ferry leaves from the landing at the willow; I should look at the map before I promise anything.</think>${CALL("file_list", { path: "projects/here/fs" })}`);
    await answer(ask, CALL("file_write", { path: "agents/self/memory/control/create.json", content: JSON.stringify({ kind: "decision", name: "ford", content: "# The ford\n\nCross at the **willow**, never at the rock." }) }));
    await answer(ask, REPLY("It is **two hundred yards**, and the current is slow today.\n\n| landing | depth |\n|---|---|\n| willow | 3 ft |\n| rock | 9 ft |\n\n1. Bring an obol.\n2. Wait at the `willow`."));
    await sh(`cat agents/charon/chat/latest.txt; cd agents/charon/memory
      echo '{"kind":"plan","name":"plan","content":"Cross the river.\\nCome back.\\nRest."}' > control/create.json
      echo '{"memory_path":"/agents/self/memory/items/plan","content":"Cross the river at noon.\\nCome back.\\nMend the boat.\\nRest."}' > control/mutate.json
      echo '{"query":"TODO"}' > ../search_code/control/search.json; cat ../search_code/result.json > /dev/null
      echo '{"op":"fly"}' > control/invoke.json; echo '{"event_type":"user","parameter":"bell","payload":{"rung":2}}' > ../events/control/signal.json
      echo '{"agent_id":"ada"}' > ../agents/control/pause.json; cat ../agents/result.json > /dev/null
      echo 'Count the oars.' > ../../ada/chat/control/input; true`);
    const page = await visit({ checked: true });
    const panels = { n: "Who needs me", a: "Agents", c: "Conversation", j: "Jobs", e: "Events", m: "Memory", t: "Tree", h: "Health", u: "Audit" };
    for (const [key, name] of Object.entries(panels)) {
      await page.keyboard.press("g");
      await page.keyboard.press(key);
      await page.locator("h1", { hasText: name }).waitFor();
      await accessible(page, name);
    }
    const shown = [
      ["needs", "#/needs/charon", ".agent .facts"],
      ["chat", "#/chat/charon", ".theirs table"],
      ["jobs", "#/jobs", ".jobs .row"],
      ["events", "#/events", ".events .row"],
      ["memory", "#/memory/charon/plan", ".beside .come"],
      ["tree", "#/tree/agents/charon/memory/control/create.json", ".form .field"],
      ["health", "#/health", ".plot"],
      ["audit", "#/audit", ".events .row"],
    ];
    for (const [name, hash, there] of shown) {
      await go(page, hash);
      await page.locator(there).first().waitFor();
      if (name === "chat") {
        await page.locator(".steps > summary").first().click();
        await page.locator(".call > summary").first().waitFor();
        await page.locator(".call > summary").nth(1).click();
      }
      if (name === "health") await until(page, () => document.querySelectorAll(".plot .line[d^=M]").length > 3);
      await accessible(page, name);
      await picture(page, `${name}-light`);
    }
    const dark = await visit({ scheme: "dark", checked: true });
    for (const [name, hash, there] of shown) {
      await go(dark, hash);
      await dark.locator(there).first().waitFor();
      await accessible(dark, `${name}, dark`);
      await picture(dark, `${name}-dark`);
    }
    const phone = await visit({ width: 390, height: 780, checked: true });
    for (const [name, hash, there] of shown) {
      await go(phone, hash);
      await phone.locator(there).first().waitFor();
      check(await phone.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name} is wider than a phone`);
      await accessible(phone, `${name}, phone`);
      await picture(phone, `${name}-phone`);
    }
    await go(phone, "#/needs");
    await phone.locator(".need").first().waitFor();
    await picture(phone, "list-phone");
    // The keys, the jump, the theme.
    await page.keyboard.press("?");
    await page.locator("dialog .keys").waitFor();
    await accessible(page, "keys");
    await page.keyboard.press("Escape");
    await page.keyboard.press(".");
    await page.locator(".palette input").fill("ada");
    await accessible(page, "jump");
    await page.keyboard.press("Enter");
    await page.locator(".conversation h2", { hasText: "ada" }).waitFor();
    await page.keyboard.press("Escape");
    await page.locator("body").press("t");
    await until(page, () => document.documentElement.dataset.theme === "light");
  },

  /** A turn is seen as it happens: the thought, the call as a card, the reply while it is written. */
  async turn({ ask, visit, check, same, sh, until }) {
    const page = await visit();
    await go(page, "#/chat/charon");
    await page.locator("[data-composer]").first().waitFor();
    await page.keyboard.press("i");
    await page.keyboard.type("Is the river high?");
    await page.keyboard.press("Enter");
    await page.locator(".turn.running .mine", { hasText: "Is the river high?" }).waitFor();
    await ask({ do: "say", text: "<think>I look at the " });
    await page.locator(".thought .growing", { hasText: "I look at the" }).waitFor();
    await ask({ do: "say", text: "gauge.</think>" });
    await page.locator(".thought .growing", { hasText: "I look at the gauge." }).waitFor();
    await answer(ask, CALL("file_read", { path: "projects/here/fs/notes.txt" }));
    const call = page.locator(".turn.running .call", { hasText: "file_read" });
    await call.waitFor();
    // Thoughts are folded when they are over.
    check((await page.locator(".turn.running details.thought").first().getAttribute("open")) === null, "the thought is not folded");
    await ask({ do: "say", text: REPLY("It is *low*: <b>two</b> feet.").slice(0, -20) });
    await page.locator(".theirs.growing em", { hasText: "low" }).waitFor();
    check(!(await page.locator(".theirs.growing").innerText()).includes("feet"), "the reply was whole before it was");
    await answer(ask, REPLY("It is *low*: <b>two</b> feet.").slice(-20));
    await page.locator(".turn:not(.running) .theirs", { hasText: "It is low: <b>two</b> feet." }).waitFor();
    await until(page, () => !document.querySelector(".turn.running"));
    await page.locator(".steps > summary").click();
    const card = page.locator(".steps .call", { hasText: "file_read" });
    await card.locator("summary").click();
    await card.locator("a.path", { hasText: "/projects/here/fs/notes.txt" }).waitFor();
    await card.locator("pre", { hasText: "a note" }).waitFor();
    same(await sh("cat agents/charon/chat/latest.txt"), "It is *low*: <b>two</b> feet.\n", "the reply");
    // A message that is refused says so where it was written; a turn can be cancelled.
    await page.locator("[data-composer]").fill("And now?");
    await page.keyboard.press("Enter");
    await page.locator(".conversation > header button", { hasText: "Cancel" }).click();
    await page.locator(".refusal", { hasText: "cancelled" }).waitFor();
    await ask({ do: "end" });
  },

  /** A job is found by the filter, its log is followed, and it is cancelled. */
  async jobs({ visit, sh, check, until }) {
    await sh(`echo '{"command":"for i in 1 2 3; do echo line $i; done; sleep 600"}' > agents/charon/terminal/control/exec.json`);
    const page = await visit();
    await go(page, "#/jobs");
    await page.keyboard.press("/");
    await page.keyboard.type("terminal exec");
    const row = page.locator(".jobs .row", { hasText: "exec" });
    await row.waitFor();
    await page.keyboard.press("Enter");
    await page.keyboard.press("j");
    await page.locator("article.job h2", { hasText: "terminal.exec" }).waitFor();
    await page.locator("article.job pre", { hasText: "sleep 600" }).waitFor();
    await page.locator("article.job button", { hasText: "Cancel" }).click();
    await page.locator("article.job .state-cancelled").waitFor();
    check((await sh("jq -r .state agents/charon/jobs/last/status.json")) === "cancelled\n", "the job is not cancelled");
    await page.locator(".jobs .row .state-cancelled").waitFor();
    await until(page, () => !document.querySelector("article.job button.danger"));
  },

  /** A form is made of the schema, a refusal stands at its field, and what passes is done. */
  async forms({ visit, sh, same, check }) {
    const page = await visit({ expected: [/400 \(Bad Request\)/] });
    await go(page, "#/tree/agents/charon/memory/control/create.json");
    await page.locator("#field-kind").waitFor();
    await page.locator("#field-kind").fill("note");
    await page.keyboard.press("Enter");
    await page.locator("#field-content-fault", { hasText: "content is missing" }).waitFor();
    check((await page.locator("#field-content").getAttribute("aria-invalid")) === "true", "the field is not marked");
    await page.locator("#field-content").fill("Seen from the page.");
    await page.locator("#field-name").fill("BAD NAME");
    await page.locator(".form button.primary").click();
    await page.locator(".form .refusal").first().waitFor();
    await page.locator("#field-name").fill("seen");
    await page.locator("#field-tags").fill("one\ntwo");
    await page.locator(".form button.primary").click();
    await page.locator(".form pre", { hasText: "/memory/items/seen" }).waitFor();
    same(await sh("cat agents/charon/memory/items/seen/content; jq -c .tags agents/charon/memory/items/seen/meta.json"), 'Seen from the page.["one","two"]\n', "the memory");
  },

  /** What agents write is shown as text, wherever it stands: nothing of it runs, loads or leads away. */
  async hostile({ ask, visit, sh, check, same }) {
    const evil = `<img src=x onerror="alert(1)"><script>alert(2)</script> [click](javascript:alert(3)) ![i](http://evil.example/x.png) <iframe src="http://evil.example"></iframe>`;
    await sh(`echo 'say it' > agents/charon/chat/control/input`);
    await answer(ask, CALL("file_write", { path: `agents/self/memory/items/nothere/<svg onload=alert(4)>`, content: evil }));
    await answer(ask, REPLY(evil));
    await sh(`cat agents/charon/chat/latest.txt; jq -nc --arg c "$(cat agents/charon/chat/latest.txt)" '{kind:"note",name:"evil",content:$c}' > agents/charon/memory/control/create.json
      echo '{"event_type":"user","parameter":"bell","payload":"<img src=x onerror=alert(5)>"}' > agents/charon/events/control/signal.json`);
    const page = await visit({ expected: [/404 \(Not Found\).*onerror/] });
    const places = ["#/needs/charon", "#/agents/charon", "#/chat/charon", "#/memory/charon/evil", "#/events", "#/audit", "#/jobs", "#/tree/projects/here/fs", "#/tree/projects/here/fs/evil.md", "#/tree/projects/here/fs/evil.html", "#/tree/agents/charon/chat/history.ndjson", "#/tree/agents/charon/memory/items/evil/content", "#/tree/%3Cimg%20src=x%20onerror=alert(6)%3E"];
    const shown = { "#/chat/charon": ".theirs", "#/memory/charon/evil": ".said .markdown", "#/tree/projects/here/fs/evil.md": ".markdown", "#/tree/projects/here/fs/evil.html": "pre.text" };
    for (const place of places) {
      await go(page, place);
      await page.locator(shown[place] ?? "main .title").first().waitFor();
      if (place === "#/chat/charon") await page.locator(".steps > summary").click();
      await page.waitForTimeout(150);
      const found = await page.evaluate(() => ({
        made: [...document.querySelectorAll("main script, main iframe, main img, main object, main embed, main [onerror], main [onload], main svg[onload]")].map((element) => element.outerHTML),
        links: [...document.querySelectorAll("main a[href]")].map((link) => link.getAttribute("href")).filter((href) => !href.startsWith("#/") && !/^https?:/.test(href)),
      }));
      same(found, { made: [], links: [] }, place);
    }
    await go(page, "#/chat/charon");
    const text = await page.locator(".theirs").first().innerText();
    check(text.includes("<script>alert(2)</script>") && text.includes('<img src=x onerror="alert(1)">'), `the reply is shown as it is: ${text}`);
    await go(page, "#/tree/projects/here/fs");
    await page.locator(".tree .name", { hasText: "<img src=x onerror=alert(7)>" }).waitFor();
  },

  /** Every figure on the page stands in the file that it names. */
  async figures({ ask, visit, sh, check, same, until }) {
    await sh(`echo 'one' > agents/charon/chat/control/input`);
    await answer(ask, REPLY("Two."));
    await sh(`cat agents/charon/chat/latest.txt; echo '{"kind":"note","name":"n","content":"x"}' > agents/charon/memory/control/create.json`);
    const page = await visit();
    let compared = 0;
    const job = (await sh("readlink agents/charon/jobs/last")).trim().split("/").at(-1);
    for (const place of ["#/needs", "#/needs/charon", "#/agents", "#/agents/charon", "#/chat/charon", `#/jobs/charon/${job}`, "#/memory/charon/n", "#/health"]) {
      await go(page, place);
      await until(page, () => document.querySelectorAll("main data[data-file]").length > 0);
      for (let tries = 0; ; tries += 1) {
        await page.waitForTimeout(300);
        const figures = await page.evaluate(() => [...document.querySelectorAll("main data[data-file]")].map((figure) => [figure.dataset.file, figure.dataset.pointer, figure.value]));
        const wrong = [];
        for (const [file, pointer, value] of figures) {
          const path = pointer.split(".").map((key) => `["${key}"]`).join("");
          // Reading the counters through the kernel changes them; `/fs` shows the same file.
          const fetched = async () => pointer.split(".").reduce((part, key) => part?.[key], JSON.parse(await page.evaluate(async (file) => (await fetch(`/fs${file}`)).text(), file))) ?? "";
          const cat = async () => (await sh(`jq -r '.${path} | if . == null then "" else tostring end' .${file}`)).trimEnd();
          const found = String(await (file === "/meta/metrics.json" ? fetched() : cat()));
          if (String(found) !== value && Number(found) !== Number(value)) wrong.push([file, pointer, value, found]);
        }
        if (!wrong.length) {
          compared += figures.length;
          break;
        }
        // Counters go on while they are compared: what differs must differ no more.
        check(tries < 20, `${place}: ${JSON.stringify(wrong)}`);
      }
    }
    check(compared > 40, `only ${compared} figures`);
  },

  /** The page goes on after the host was restarted, and shows what happened meanwhile. */
  async restart({ ask, visit, sh, until }) {
    const page = await visit({ expected: [/ERR_CONNECTION_REFUSED|ERR_EMPTY_RESPONSE|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET|503/] });
    await go(page, "#/events");
    await sh(`echo '{"event_type":"user","parameter":"before"}' > agents/charon/events/control/signal.json`);
    await page.locator(".events .row", { hasText: "before" }).waitFor();
    await ask({ do: "stop" });
    await page.locator(".connection.lost").waitFor();
    await sh(`echo '{"event_type":"user","parameter":"meanwhile"}' > agents/charon/events/control/signal.json`);
    await ask({ do: "restart" });
    await page.locator(".connection.live").waitFor();
    await page.locator(".events .row", { hasText: "meanwhile" }).waitFor();
    await sh(`echo '{"event_type":"user","parameter":"after"}' > agents/charon/events/control/signal.json`);
    await page.locator(".events .row", { hasText: "after" }).waitFor();
    await until(page, () => ["before", "meanwhile", "after"].every((word) => [...document.querySelectorAll(".events .row")].filter((row) => row.textContent.includes(` ${word} `)).length === 1));
  },

  /** Two browsers see the same; one that was revoked is told so and shows nothing more; an agent sees its own. */
  async sessions({ ask, visit, check, sh }) {
    const [one, two] = [await visit({ expected: [/401/] }), await visit({ expected: [/401/] })];
    for (const page of [one, two]) {
      await go(page, "#/chat/charon");
      await page.locator(".turns").waitFor();
    }
    const tab = await one.context().newPage();
    await tab.goto(one.url());
    await tab.locator("[data-composer]").fill("Hello from a tab");
    await tab.locator(".composer button").click();
    await answer(ask, REPLY("Hello both."));
    for (const page of [one, two, tab]) await page.locator(".theirs", { hasText: "Hello both." }).waitFor();
    const rows = (await ask({ do: "token", words: ["list", "--json"] })).split("\n").map((row) => JSON.parse(row));
    check(rows.length === 2, `${rows.length} sessions`);
    await ask({ do: "token", words: ["revoke", rows[0].id] });
    await one.locator(".over", { hasText: "acheron open" }).waitFor();
    await sh("true");
    check((await two.locator(".over").count()) === 0, "the other session ended, too");
    await two.locator("header button", { hasText: "Log out" }).click();
    await two.locator(".over").waitFor();
    const ada = await visit({ agent: "ada", expected: [/404 \(Not Found\)/] });
    await ada.locator(".need", { hasText: "ada" }).waitFor();
    check((await ada.locator(".need").count()) === 1, "an agent sees another");
    check((await ada.locator("nav a", { hasText: "Audit" }).count()) === 0, "an agent is shown the audit");
  },

  /** Ten thousand events and a hundred thousand files: few rows are drawn, and the end is reached. */
  async many({ visit, check, until }) {
    const page = await visit();
    await go(page, "#/events");
    await until(page, () => /^\d{4,} of/.test(document.querySelector("main [role=status]")?.textContent ?? ""));
    await page.locator("[data-rows]").focus();
    for (const key of ["Home", "PageDown", "PageDown", "End"]) {
      await page.keyboard.press(key);
      check((await page.locator(".row").count()) < 120, "all rows are drawn");
    }
    await page.locator("[data-filter]").fill("n9999");
    await page.locator(".events .row", { hasText: "n9999" }).first().waitFor();
    await go(page, "#/tree/projects/here/fs/many");
    await page.locator(".tree .name", { hasText: "f00000" }).waitFor();
    await page.locator("[data-rows]").focus();
    // Pages come as the end is reached.
    let last = "";
    for (let tries = 0; tries < 400 && last !== "f99999"; tries += 1) {
      await page.evaluate(() => {
        const rows = document.querySelector("[data-rows]");
        rows.scrollTop = rows.scrollHeight;
      });
      await page.waitForTimeout(60);
      last = await page.evaluate(() => [...document.querySelectorAll(".tree .row .name")].map((name) => name.textContent).filter((name) => /^f\d+$/.test(name)).sort().at(-1) ?? "");
    }
    check(last === "f99999", `the last file seen is ${last}`);
    check((await page.locator(".row").count()) < 120, "all files are drawn");
  },
};
