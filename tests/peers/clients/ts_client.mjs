// Drives a server with the TypeScript SDK's client; see steps.py for the description it takes and
// the line it prints. Run it with IRIS_PEERS set, since modules are looked up beside the importer.

import { existsSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import path from 'node:path';
import process from 'node:process';

const modules = path.join(process.env.IRIS_PEERS ?? 'target/peers', 'npm', 'package.json');
const require = createRequire(path.resolve(modules));
const load = name => import(pathToFileURL(require.resolve(name)).href);
const { Client, LOG_LEVEL_META_KEY, ProtocolError, SdkError, SdkErrorCode, StreamableHTTPClientTransport } = await load('@modelcontextprotocol/client');
const { StdioClientTransport } = await load('@modelcontextprotocol/client/stdio');

const DEFAULT_TIMEOUT_S = 60;

function transportOf({ command, env, cwd, url, headers }) {
  if (command) {
    const inherited = Object.fromEntries(Object.entries(process.env).filter(([, value]) => value !== undefined));
    return new StdioClientTransport({
      command: command[0],
      args: command.slice(1),
      env: { ...inherited, ...env },
      cwd,
      stderr: 'inherit',
    });
  }
  return new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: headers ?? {} } });
}

// The log messages that came, who waits for another one, and what a call says of them.
const logs = [];
let logged = () => {};
let wanted = {};

async function wantLogs(client, level) {
  client.setNotificationHandler('notifications/message', ({ params }) => {
    logs.push(params);
    logged();
  });
  if (client.getNegotiatedProtocolVersion() < '2026-07-28') await client.setLoggingLevel(level);
  else wanted = { _meta: { [LOG_LEVEL_META_KEY]: level } };
}

// Answers for the person behind the client.
function answerFor(client, person, asked) {
  const answer = of => ({ params }) => {
    asked.push(params ?? {});
    return person[of ?? params.mode ?? 'form'];
  };
  client.setRequestHandler('elicitation/create', answer());
  client.setRequestHandler('sampling/createMessage', answer('sampling'));
  client.setRequestHandler('roots/list', answer('roots'));
}

// How often the list of tools was said to have changed, and who waits for the next time.
let changes = 0;
let changed = () => {};

async function list(client, step) {
  while (changes < (step.changes ?? 0)) await new Promise(resolve => (changed = resolve));
  const tools = [];
  let cursor;
  do {
    const page = await client.listTools(cursor ? { cursor } : undefined);
    tools.push(...page.tools);
    cursor = page.nextCursor;
  } while (cursor);
  return { tools: tools.map(tool => tool.name), definitions: tools };
}

// The SDK reports a round of questions as progress too; that is not the server's.
const isOwn = ({ message }) => message?.startsWith('Fulfilling input required by ') ?? false;

async function call(client, step) {
  const seen = [];
  const timeout = (step.timeout_s ?? DEFAULT_TIMEOUT_S) * 1000;
  const told = ({ progress, total, message }) => {
    if (isOwn({ message })) return;
    seen.push([progress, total ?? null, message ?? null]);
    if (seen.length === step.progress) writeFileSync(step.touch, '');
  };
  const result = await client.callTool(
    { name: step.name, arguments: step.arguments ?? {}, ...wanted },
    { timeout, ...(step.progress ? { onprogress: told } : {}) },
  );
  while (logs.length < (step.logs ?? 0)) await new Promise(resolve => (logged = resolve));
  return { result, ...(step.progress ? { progress: seen } : {}) };
}

async function cancelCall(client, step) {
  const controller = new AbortController();
  const started = performance.now();
  let asked = started;
  let progress = 0;
  const cancel = () => {
    asked = performance.now();
    controller.abort(new Error('cancelled by the driver'));
  };
  const timer = 'after_ms' in step ? setTimeout(cancel, step.after_ms) : undefined;
  const options = {
    signal: controller.signal,
    timeout: (step.timeout_s ?? DEFAULT_TIMEOUT_S) * 1000,
    onprogress: report => {
      if (isOwn(report)) return;
      progress += 1;
      if (progress === step.after_progress) cancel();
    },
  };
  const ended = {};
  try {
    ended.result = await client.callTool({ name: step.name, arguments: step.arguments ?? {} }, options);
  } catch (error) {
    if (!controller.signal.aborted) throw error;
  } finally {
    clearTimeout(timer);
  }
  const done = performance.now();
  // Who leaves at once may take the news of it along.
  while (step.until && !existsSync(step.until)) await new Promise(resolve => setTimeout(resolve, 5));
  return {
    cancelled: !('result' in ended),
    progress,
    elapsed_ms: Math.round(done - started),
    after_cancel_ms: Math.round(done - asked),
    ...ended,
  };
}

const OPS = {
  list,
  call,
  cancel_call: cancelCall,
  resources: async client => ({ resources: (await client.listResources()).resources.map(found => found.uri) }),
  ping: async client => (await client.ping(), { pong: true }),
};

// Returns what the other side would have answered, or throws on what is no answer.
function protocolError(error) {
  if (error instanceof ProtocolError) return { code: error.code, message: error.message, data: error.data };
  // The SDK refuses by itself what the negotiated era does not have.
  if (error instanceof SdkError && error.code === SdkErrorCode.MethodNotSupportedByProtocolVersion) {
    return { code: -32601, message: error.message };
  }
  throw error;
}

async function runSteps(client, steps, report) {
  for (const step of steps) {
    let seen;
    try {
      seen = await OPS[step.op](client, step);
    } catch (error) {
      seen = { error: protocolError(error) };
    }
    report.steps.push({ op: step.op, ...seen });
  }
}

async function connectAndRun(description, report) {
  const all = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };
  const client = new Client(
    { name: 'iris-mcp-ts-driver', version: '1.0.0' },
    {
      capabilities: description.person ? all : description.elicit ? { elicitation: {} } : {},
      versionNegotiation: { mode: description.mode ?? 'auto' },
    },
  );
  if (description.elicit) {
    const answers = [...description.elicit];
    client.setRequestHandler('elicitation/create', request => {
      report.elicited.push(request.params.message);
      const answer = answers.length > 1 ? answers.shift() : answers[0];
      return answer ?? new Promise(() => {});
    });
  }
  if (description.person) answerFor(client, description.person, report.asked);
  client.setNotificationHandler('notifications/tools/list_changed', () => {
    changes += 1;
    changed();
  });
  await client.connect(transportOf(description.transport));
  report.protocol = client.getNegotiatedProtocolVersion() ?? null;
  report.server = client.getServerVersion() ?? null;
  report.instructions = client.getInstructions() ?? null;
  if (description.log_level) await wantLogs(client, description.log_level);
  try {
    await runSteps(client, description.steps, report);
  } finally {
    report.changes = changes;
    await client.close();
  }
}

const description = JSON.parse(process.argv[2]);
const report = { protocol: null, server: null, steps: [], elicited: [], asked: [], logs };
const limit = (description.timeout_s ?? 120) * 1000;
const late = new Promise((_, reject) => {
  setTimeout(() => reject(new Error(`not done after ${limit} ms`)), limit).unref();
});
let code = 0;
try {
  await Promise.race([connectAndRun(description, report), late]);
} catch (error) {
  report.trouble = String(error);
  console.error(error);
  code = 1;
}
process.stdout.write(`${JSON.stringify(report)}\n`, () => process.exit(code));
