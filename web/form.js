// Forms for control files, from the JSON Schema of their service. `fields` and `placed` are pure.

import { html, useEffect, useState, useLoaded, Json, Refusal, PathLink, Empty } from "./ui.js";
import { command, read, readJson } from "./fs.js";

function resolved(schema, root, depth = 0) {
  if (!schema || typeof schema !== "object" || depth > 8) return {};
  if (typeof schema.$ref === "string" && schema.$ref.startsWith("#/")) {
    const found = schema.$ref.slice(2).split("/").reduce((part, key) => part?.[key.replaceAll("~1", "/").replaceAll("~0", "~")], root);
    return { ...resolved(found, root, depth + 1), ...without(schema, "$ref") };
  }
  const forms = schema.anyOf ?? schema.oneOf;
  if (forms) {
    const real = forms.filter((form) => form?.type !== "null");
    const words = real.flatMap((form) => (form.const === undefined ? (form.enum ?? [undefined]) : [form.const]));
    if (real.length > 1 && words.every((word) => typeof word === "string")) return { ...schema, type: "string", enum: words };
    if (real.length === 1) return { ...resolved(real[0], root, depth + 1), ...without(schema, "anyOf", "oneOf") };
  }
  return schema;
}

function without(schema, ...keys) {
  return Object.fromEntries(Object.entries(schema).filter(([key]) => !keys.includes(key)));
}

/** The fields of an object: `{name, kind, required, about, options, usual}`; `kind` says how it is entered. */
export function fields(schema, root) {
  const object = resolved(schema, root);
  const required = new Set(object.required ?? []);
  return Object.entries(object.properties ?? {}).map(([name, raw]) => {
    const part = resolved(raw, root);
    const types = [part.type ?? []].flat().filter((type) => type !== "null");
    const items = resolved(part.items, root);
    let kind = "json";
    if (part.enum) kind = "choice";
    else if (types.length === 1 && types[0] === "string") kind = /content|text|message|body|input|command|prompt|query/.test(name) ? "long" : "text";
    else if (types.length === 1 && ["integer", "number", "boolean"].includes(types[0])) kind = types[0];
    else if (types[0] === "array" && items.type === "string") kind = "lines";
    return { name, kind, required: required.has(name), about: part.description ?? "", options: part.enum, usual: part.default, any: types.length === 0 };
  });
}

/** The arguments that were entered, or where they cannot be read: `{value, faults}`. */
export function collected(fields, entered) {
  const value = {};
  const faults = {};
  for (const { name, kind, required, any } of fields) {
    const text = entered[name];
    if (text === undefined || text === "" || (kind === "boolean" && text === false && !required)) continue;
    if (kind === "integer" || kind === "number") {
      value[name] = Number(text);
      if (Number.isNaN(value[name])) faults[name] = "is not a number";
    } else if (kind === "lines") {
      value[name] = text.split("\n").map((line) => line.trim()).filter(Boolean);
    } else if (kind === "json") {
      try {
        value[name] = JSON.parse(text);
      } catch (error) {
        // A field that takes anything takes plain text, too.
        if (any) value[name] = text;
        else faults[name] = `is not JSON: ${error.message}`;
      }
    } else {
      value[name] = text;
    }
  }
  return { value, faults };
}

/** A refusal at the fields that it names: `{at: {field: sentence}, rest: sentence}`. */
export function placed(message, fields, operation) {
  const names = fields.map((field) => field.name);
  const text = message.startsWith(`${operation}: `) ? message.slice(operation.length + 2) : message;
  const at = {};
  const rest = [];
  for (const part of text.split("; ")) {
    const begun = /^`?([\w-]+)`?(?:[.[][^:]*)?(?::| is missing| is | must | has )/.exec(part)?.[1];
    const named = names.includes(begun) ? begun : names.find((name) => part.includes(`\`${name}\``));
    if (named) at[named] = at[named] ? `${at[named]}; ${part}` : part;
    else rest.push(part);
  }
  return { at, rest: rest.join("; ") };
}

/** A control file: a form if its service has a schema, otherwise its template to be filled in. */
export function Control({ path }) {
  const cut = path.lastIndexOf("/control/");
  const service = path.slice(0, cut);
  const operation = path.slice(cut + 9).replace(/\.json$/, "");
  const [schema, error] = useLoaded((signal) => readJson(`${service}/SCHEMA.json`, { signal }).catch(() => null), [service]);
  if (schema === undefined) return error ? html`<${Refusal} error=${error}/>` : html`<${Empty}>Reading the schema…</${Empty}>`;
  const own = schema?.$defs?.[`${operation}.arguments`];
  return own ? html`<${SchemaForm} key=${path} path=${path} schema=${own} root=${schema} operation=${operation} service=${service}/>` : html`<${TemplateForm} key=${path} path=${path}/>`;
}

function SchemaForm({ path, schema, root, operation, service }) {
  const list = fields(schema, root);
  const [entered, setEntered] = useState({});
  const [refused, setRefused] = useState({ at: {}, rest: "" });
  const [answer, setAnswer] = useState(undefined);
  const [busy, setBusy] = useState(false);
  const set = (name, value) => setEntered((before) => ({ ...before, [name]: value }));
  const send = async (event) => {
    event.preventDefault();
    const { value, faults } = collected(list, entered);
    if (Object.keys(faults).length) return setRefused({ at: faults, rest: "" });
    setBusy(true);
    setAnswer(undefined);
    try {
      setAnswer(await command(path, value, { wait: 60 }));
      setRefused({ at: {}, rest: "" });
    } catch (error) {
      setRefused(placed(error.message, list, operation));
    }
    setBusy(false);
  };
  const about = resolved(schema, root).description;
  return html`<form class="form" onSubmit=${send} noValidate>
    ${about ? html`<p class="about">${about}</p>` : null}
    ${list.map((field) => html`<${Field} field=${field} value=${entered[field.name]} fault=${refused.at[field.name]} onInput=${(value) => set(field.name, value)}/>`)}
    ${refused.rest ? html`<p class="refusal" role="alert">${refused.rest}</p>` : null}
    <div class="actions"><button class="primary" disabled=${busy}>${busy ? "Running…" : operation.replaceAll("_", " ")}</button><${PathLink} path=${`${service}/README.md`}>what it does</${PathLink}></div>
    ${answer === undefined ? null : html`<h3>Answer</h3><${Json} value=${answer}/>`}
  </form>`;
}

function Field({ field, value, fault, onInput }) {
  const id = `field-${field.name}`;
  const described = [field.about ? `${id}-about` : null, fault ? `${id}-fault` : null].filter(Boolean).join(" ") || undefined;
  const same = { id, "aria-describedby": described, "aria-invalid": fault ? "true" : undefined, "aria-required": field.required ? "true" : undefined };
  const typed = (event) => onInput(event.target.value);
  const hint = field.usual === undefined || field.usual === null || field.usual === "" ? "" : JSON.stringify(field.usual);
  let input;
  if (field.kind === "boolean") input = html`<input type="checkbox" ...${same} checked=${value ?? false} onChange=${(event) => onInput(event.target.checked)}/>`;
  else if (field.kind === "choice") input = html`<select ...${same} value=${value ?? ""} onChange=${typed}><option value=""></option>${field.options.map((option) => html`<option value=${option}>${option}</option>`)}</select>`;
  else if (field.kind === "long" || field.kind === "json" || field.kind === "lines") input = html`<textarea rows=${field.kind === "long" ? 3 : 2} ...${same} value=${value ?? ""} placeholder=${field.kind === "lines" ? "one per line" : field.any ? "text, or JSON" : field.kind === "json" ? "JSON" : hint} onInput=${typed}></textarea>`;
  else input = html`<input type="text" inputmode=${field.kind === "text" ? undefined : "decimal"} ...${same} value=${value ?? ""} placeholder=${hint} onInput=${typed}/>`;
  return html`<div class=${fault ? "field wrong" : "field"}><label for=${id}>${field.name}${field.required ? html`<span class="required" aria-hidden="true"> *</span>` : null}</label>${input}${field.about ? html`<p class="hint" id=${`${id}-about`}>${field.about}</p>` : null}${fault ? html`<p class="refusal" id=${`${id}-fault`} role="alert">${fault}</p>` : null}</div>`;
}

function TemplateForm({ path }) {
  const [text, setText] = useState("");
  const [error, setError] = useState(undefined);
  const [answer, setAnswer] = useState(undefined);
  useEffect(() => {
    read(path).then(setText, () => {});
  }, [path]);
  const send = async (event) => {
    event.preventDefault();
    setError(undefined);
    try {
      setAnswer((await command(path, text)) || "written");
    } catch (refusal) {
      setError(refusal);
    }
  };
  return html`<form class="form" onSubmit=${send}><div class=${error ? "field wrong" : "field"}><label for="field-text">What to write</label><textarea id="field-text" rows="6" value=${text} onInput=${(event) => setText(event.target.value)} aria-invalid=${error ? "true" : undefined} aria-describedby=${error ? "field-text-fault" : undefined}></textarea>${error ? html`<p class="refusal" id="field-text-fault" role="alert"><strong>${error.code}</strong> ${error.message}</p>` : null}</div><div class="actions"><button class="primary">Write</button></div>${answer === undefined ? null : html`<${Json} value=${answer}/>`}</form>`;
}
