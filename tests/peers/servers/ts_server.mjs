// A server on a TypeScript SDK with one tool for each thing a server can want of its client.
//
//     ts_server.mjs v1|v2 stdio
//     ts_server.mjs v1|v2 http PORT
//
// v1 (@modelcontextprotocol/sdk) knows the older era only and asks by requests of its own; v2
// (@modelcontextprotocol/server) returns its question in both eras and makes a request of it itself
// where that is what the client understands. A tool that asked returns, as JSON, the answer as the
// SDK has read it. Both stand in the lockfile already: other peers are built on them.

import { appendFileSync, existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import path from 'node:path';
import process from 'node:process';

const modules = path.join(process.env.IRIS_PEERS ?? 'target/peers', 'npm', 'package.json');
const require = createRequire(path.resolve(modules));
const load = name => import(pathToFileURL(require.resolve(name)).href);
const { z } = await load('zod');

const [, , sdk, transport, port] = process.argv;
const about = [{ name: 'asks', version: '1.0.0' }, { capabilities: { tools: {}, logging: {} } }];

const FORM = {
  message: 'Which colour for „Köln“?\nAnd how many? 🎨',
  requestedSchema: {
    type: 'object',
    properties: {
      colour: { type: 'string', enum: ['grün', 'blau'], title: 'Colour' },
      count: { type: 'integer', minimum: 1, maximum: 9 },
      sure: { type: 'boolean', default: false },
    },
    required: ['colour', 'count'],
  },
};
const URL_ = { message: 'Please sign in.', url: 'https://example.com/sign-in?flow=a%20b&x=1#top' };
const SAMPLING = {
  messages: [{ role: 'user', content: { type: 'text', text: 'Capital of France?' } }],
  maxTokens: 16,
  systemPrompt: 'Answer in one word.',
};

const text = words => ({ content: [{ type: 'text', text: words }] });
const told = answer => text(JSON.stringify(answer));

// What a tool does besides asking is the same in both: `it` is how its SDK spells it.
async function progress(it, { until }) {
  for (const step of [1, 2, 3]) await it.progress({ progress: step, total: 3, message: `step ${step}` });
  // Whoever gets the reports makes this file, while the call still runs.
  while (!existsSync(until)) await new Promise(resolve => setTimeout(resolve, 5));
  return text('done');
}

async function slow(it, { ledger }) {
  await it.progress({ progress: 1, total: 2, message: 'it has begun' });
  const cancelled = await new Promise(resolve => {
    const timer = setTimeout(resolve, 60_000, false);
    it.signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve(true);
    });
  });
  if (cancelled) appendFileSync(ledger, 'cancelled\n');
  return text('slept');
}

async function log(it) {
  await it.log('warning', { städte: ['Köln'] }, 'engine');
  return text('logged');
}

function register(server, asking, spelled) {
  for (const [name, ask] of Object.entries(asking)) server.registerTool(name, { inputSchema: z.object({}) }, (_, extra) => ask(extra));
  const add = (name, shape, body) =>
    server.registerTool(name, { inputSchema: z.object(shape) }, (given, extra) => body(spelled(server, extra), given));
  add('progress', { until: z.string() }, progress);
  add('slow', { ledger: z.string() }, slow);
  add('log', {}, log);
  return server;
}

async function first() {
  const { McpServer } = await load('@modelcontextprotocol/sdk/server/mcp.js');
  const make = () => {
    const server = new McpServer(...about);
    const related = extra => ({ relatedRequestId: extra.requestId });
    const asking = {
      ask_form: async extra => told(await server.server.elicitInput(FORM, related(extra))),
      ask_url: async extra =>
        told(await server.server.elicitInput({ mode: 'url', elicitationId: 'sign-in-1', ...URL_ }, related(extra))),
      sample: async extra => told(await server.server.createMessage(SAMPLING, related(extra))),
      roots: async extra => told(await server.server.listRoots(undefined, related(extra))),
    };
    return register(server, asking, (_, extra) => ({
      signal: extra.signal,
      progress: async given => {
        const progressToken = extra._meta?.progressToken;
        if (progressToken === undefined) return;
        await extra.sendNotification({ method: 'notifications/progress', params: { progressToken, ...given } });
      },
      log: (level, data, logger) =>
        extra.sendNotification({ method: 'notifications/message', params: { level, data, logger } }),
    }));
  };
  if (transport === 'stdio') {
    const { StdioServerTransport } = await load('@modelcontextprotocol/sdk/server/stdio.js');
    await make().connect(new StdioServerTransport());
    return;
  }
  const { StreamableHTTPServerTransport } = await load('@modelcontextprotocol/sdk/server/streamableHttp.js');
  const sessions = new Map();
  listen(async (request, response) => {
    let session = sessions.get(request.headers['mcp-session-id']);
    if (!session) {
      session = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: id => sessions.set(id, session),
      });
      await make().connect(session);
    }
    await session.handleRequest(request, response);
  });
}

async function second() {
  const { McpServer, createMcpHandler, inputRequired } = await load('@modelcontextprotocol/server');
  const asked = question => async ({ mcpReq }) => {
    const answer = mcpReq.inputResponses?.it;
    if (answer) return told(mcpReq.requestState() === 'asked once' ? answer : `not my state: ${mcpReq.requestState()}`);
    return inputRequired({ inputRequests: { it: question }, requestState: 'asked once' });
  };
  const asking = {
    ask_form: asked(inputRequired.elicit(FORM)),
    ask_url: asked(inputRequired.elicitUrl(URL_)),
    sample: asked(inputRequired.createMessage(SAMPLING)),
    roots: asked(inputRequired.listRoots()),
  };
  const make = () =>
    register(new McpServer(...about), asking, (_, { mcpReq }) => ({
      signal: mcpReq.signal,
      progress: async given => {
        const progressToken = mcpReq._meta?.progressToken;
        if (progressToken === undefined) return;
        await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, ...given } });
      },
      log: mcpReq.log,
    }));
  if (transport === 'stdio') {
    const { serveStdio } = await load('@modelcontextprotocol/server/stdio');
    serveStdio(make);
    return;
  }
  const { getRequestListener } = await load('@hono/node-server');
  listen(getRequestListener(createMcpHandler(make).fetch));
}

function listen(handle) {
  createServer(handle).listen(Number(port), '127.0.0.1', () => console.error('listening on', port));
}

await { v1: first, v2: second }[sdk]();
