// Asks a YAML language server about files as an editor does, over LSP:
//   node language_server.js SCHEMA FILE...
// A file with the sign ‸ is asked for what can be written there, and for what is known about it;
// any other file for its mistakes. Prints a line for each answer.
const { spawn } = require('child_process');
const { readFileSync } = require('fs');
const { basename, resolve } = require('path');
const { pathToFileURL } = require('url');

const CURSOR = '‸';
const [schema, ...files] = process.argv.slice(2);
const url = (path) => pathToFileURL(resolve(path)).href;
const settings = {
  yaml: {
    schemas: { [url(schema)]: ['*.yaml'] },
    schemaStore: { enable: false },
    validate: true,
    completion: true,
    hover: true,
  },
};
const capabilities = {
  workspace: { configuration: true },
  textDocument: {
    completion: { completionItem: { documentationFormat: ['markdown'], snippetSupport: true } },
    hover: { contentFormat: ['markdown'] },
    publishDiagnostics: {},
  },
};

const script = require.resolve('yaml-language-server/bin/yaml-language-server');
const server = spawn(process.execPath, [script, '--stdio'], { stdio: ['pipe', 'pipe', 'inherit'] });
server.on('exit', (code) => process.exit(code === null ? 1 : code));
// Whoever ends this program ends the server too.
process.on('exit', () => server.kill());

const answers = new Map();
const mistakes = new Map();
let requests = 0;
let heard = Buffer.alloc(0);

function send(message) {
  const text = Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message }));
  server.stdin.write(`Content-Length: ${text.length}\r\n\r\n`);
  server.stdin.write(text);
}

function ask(method, params) {
  requests += 1;
  send({ id: requests, method, params });
  return new Promise((done) => answers.set(requests, done));
}

server.stdout.on('data', (bytes) => {
  heard = Buffer.concat([heard, bytes]);
  for (;;) {
    const end = heard.indexOf('\r\n\r\n');
    if (end < 0) return;
    const length = Number(/Content-Length: (\d+)/i.exec(heard.toString('utf8', 0, end))[1]);
    if (heard.length < end + 4 + length) return;
    hear(JSON.parse(heard.toString('utf8', end + 4, end + 4 + length)));
    heard = heard.subarray(end + 4 + length);
  }
});

function hear(message) {
  const { id, method, params } = message;
  if (method === 'workspace/configuration') {
    const result = params.items.map(({ section }) => settings[section] ?? null);
    send({ id, result });
  } else if (method === 'textDocument/publishDiagnostics') {
    mistakes.get(params.uri)?.(params.diagnostics);
  } else if (method !== undefined && id !== undefined) {
    send({ id, result: null });
  } else if (id !== undefined) {
    if (message.error) throw new Error(JSON.stringify(message.error));
    answers.get(id)(message.result);
  }
}

async function look(path) {
  const written = readFileSync(path, 'utf8');
  const [before, ...after] = written.split(CURSOR);
  const name = basename(path, '.yaml');
  // The server looks for patterns only in folders without a dot, unlike those of tests.
  const uri = `file:///scenarios/${name}.yaml`;
  const found = new Promise((done) => mistakes.set(uri, done));
  const document = { uri, languageId: 'yaml', version: 1, text: before + after.join('') };
  send({ method: 'textDocument/didOpen', params: { textDocument: document } });
  const diagnostics = await found;
  if (after.length === 0) {
    console.log(`${name} mistakes ${diagnostics.length}`);
    for (const { range, message } of diagnostics) {
      console.log(`${name} ${range.start.line + 1} ${message}`);
    }
    return;
  }
  const lines = before.split('\n');
  const position = { line: lines.length - 1, character: lines[lines.length - 1].length };
  const at = { textDocument: { uri }, position };
  const offered = await ask('textDocument/completion', at);
  for (const { label, insertText, documentation } of offered.items ?? offered) {
    const doc = documentation?.value ?? documentation ?? '';
    console.log(`${name} offers ${label} ${JSON.stringify(insertText)} ${JSON.stringify(doc)}`);
  }
  const known = await ask('textDocument/hover', at);
  console.log(`${name} tells ${JSON.stringify(known?.contents?.value ?? '')}`);
}

async function main() {
  await ask('initialize', { processId: process.pid, rootUri: null, capabilities });
  send({ method: 'initialized', params: {} });
  send({ method: 'workspace/didChangeConfiguration', params: { settings } });
  for (const path of files) await look(path);
  process.exit(0);
}

main().catch((reason) => {
  console.error(reason);
  process.exit(1);
});
