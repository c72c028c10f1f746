// Drives `acheron mcp` with the official TypeScript SDK.
import { createRequire } from "node:module";
const require = createRequire(process.argv[2] + "/");
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const { ResourceUpdatedNotificationSchema } = require("@modelcontextprotocol/sdk/types.js");
const [command, ...args] = process.argv.slice(3);
const client = new Client({ name: "test", version: "1" });
await client.connect(new StdioClientTransport({ command, args }));
const call = async (name, args) => {
  const result = await client.callTool({ name, arguments: args });
  return (result.isError ? "refused: " : "") + result.content[0].text;
};
console.log((await client.listTools()).tools.map((tool) => tool.name).join(" "));
const me = "/agents/self/";
console.log((await call("file_read", { path: "/AGENTS.md" })).split("\n")[0]);
console.log((await call("file_write", { path: me + "memory/control/create.json", content: '{"kind":"note","name":"styx","content":"cold"}' })).includes("job_id"));
console.log(await call("file_read", { path: me + "memory/items/styx/content" }));
console.log(await call("file_read", { path: me + "nothing" }));
const uri = "acheron:/agents/self/memory/items/styx/content";
const updated = new Promise((done) => client.setNotificationHandler(ResourceUpdatedNotificationSchema, (told) => done(told.params.uri)));
await client.subscribeResource({ uri });
await call("file_write", { path: me + "memory/items/styx/content", content: "colder" });
console.log(await updated);
const waiting = new AbortController();
const never = client.callTool({ name: "file_read", arguments: { path: me + "events/sources/user/never.json" } }, undefined, { signal: waiting.signal });
setTimeout(() => waiting.abort("enough"), 300);
console.log(await never.then(() => "answered", () => "cancelled"));
await client.close();
