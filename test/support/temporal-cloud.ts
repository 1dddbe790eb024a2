import { readFile } from 'node:fs/promises';
import { connect, createSecureServer, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { google, temporal } from '@temporalio/proto';
import type { ProductionTemporal } from '../../testbed/production-temporal';

const { PermissionDeniedFailure, ResourceExhaustedFailure } = temporal.api.errordetails.v1;
const { RespondWorkflowTaskCompletedRequest } = temporal.api.workflowservice.v1;
const { CommandType } = temporal.api.enums.v1;

const AWAY_MS = 30;
/** Length of gRPC's header before a message. */
const PREFIX = 5;
/** The cause is the limit of actions, the scope a namespace. */
const EXHAUSTED = ResourceExhaustedFailure.encode({ cause: 6, scope: 1 }).finish();
/** Reads that Cloud does not throttle, and those that have a limit of their own. */
const UNLIMITED = /^(GetSystemInfo|DescribeNamespace|CountWorkflowExecutions|DescribeTaskQueue)$/;
/** Calls that are an action each. */
const ACTIONS = new Set(['StartWorkflowExecution', 'SignalWorkflowExecution', 'RecordActivityTaskHeartbeat']);
/** Commands of a workflow that are an action each. */
const COMMANDS = new Set<number>([
  CommandType.COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK,
  CommandType.COMMAND_TYPE_START_TIMER,
  CommandType.COMMAND_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES,
]);

export type TemporalCloud = Awaited<ReturnType<typeof startTemporalCloud>>;

/**
 * Stands in front of a running server and answers as Temporal Cloud does, by public sources: its pages about actions and limits, a
 * refusal as it arrived (temporalio/sdk-typescript#1765), and the server's own error for too many actions.
 * @param apiKey clients need this key; without it a certificate
 */
export async function startTemporalCloud(server: ProductionTemporal, namespace: string, apiKey?: string) {
  const certificates = async (folder: string) => {
    const read = (name: string) => readFile(join(server.certificates, folder, `${name}.pem`));
    return { ca: await read('ca'), cert: await read('cert'), key: await read('key') };
  };
  const own = { ...(await certificates('client')), servername: 'temporal' };
  const reach = () => connect(`https://${server.address}`, own).on('error', () => undefined);
  let upstream = reach();
  const limit = { perSecond: 1_000_000, left: 1, atMs: 0 };
  const seen = { actions: 0, throttled: 0, calls: [] as string[] };

  const spent = () => {
    const nowMs = performance.now();
    const gained = ((nowMs - limit.atMs) * limit.perSecond) / 1_000;
    Object.assign(limit, { left: Math.min(limit.perSecond, limit.left + gained), atMs: nowMs });
    return limit.left <= 0;
  };

  async function answer(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of stream) chunks.push(chunk as Buffer);
    await sleep(AWAY_MS);
    const [, service = '', call = ''] = String(headers[':path']).split('/');
    seen.calls.push(call);
    // A certificate comes to an address that belongs to its namespace, a key to one of a region.
    const { authorization, 'temporal-namespace': named = apiKey ? '' : namespace } = headers;
    const known = named === namespace && (apiKey === undefined || authorization === `Bearer ${apiKey}`);
    if (!known || !service.endsWith('.WorkflowService') || call === 'RegisterNamespace') {
      const reason = `caller has insufficient permissions for namespace '${String(named)}'`;
      const value = PermissionDeniedFailure.encode({ reason }).finish();
      return refuse(stream, 7, 'Request unauthorized.', 'PermissionDeniedFailure', value);
    }
    if (!UNLIMITED.test(call) && spent()) {
      seen.throttled += 1;
      return refuse(stream, 8, 'Action per second limit exceeded.', 'ResourceExhaustedFailure', EXHAUSTED);
    }
    const body = Buffer.concat(chunks);
    if (!(await forward(stream, headers, body))) return;
    const actions = actionsOf(call, body);
    seen.actions += actions;
    limit.left -= actions;
  }

  /** @returns whether the server did what it was asked */
  function forward(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, body: Buffer): Promise<boolean> {
    const { host: _host, connection: _connection, ...rest } = headers;
    // A server closes a connection that nothing has come over for a minute.
    if (upstream.closed || upstream.destroyed) upstream = reach();
    const call = upstream.request({ ...rest, ':authority': server.address });
    stream.once('close', () => call.close());
    call.end(body);
    return new Promise((resolve) => {
      let status: unknown;
      call.on('response', (head) => {
        status = head['grpc-status'];
        // A refusal has its status there, and nothing follows.
        const endStream = status !== undefined;
        if (stream.destroyed || stream.headersSent) return;
        stream.respond(head, { endStream, waitForTrailers: !endStream });
      });
      call.on('trailers', (trailers) => {
        status = trailers['grpc-status'];
        stream.once('wantTrailers', () => stream.sendTrailers(trailers));
      });
      call.on('data', (chunk) => stream.writable && stream.write(chunk));
      // A cancelled call ends without an answer.
      call.on('end', () => stream.headersSent && stream.writable && stream.end());
      call.on('error', () => stream.close());
      call.on('close', () => resolve(status === '0'));
    });
  }

  const proxy = createSecureServer({ ...(await certificates('server')), requestCert: apiKey === undefined });
  const sessions = new Set<{ destroy(): void }>();
  proxy.on('session', (session) => void sessions.add(session));
  proxy.on('stream', (stream, headers) => {
    stream.on('error', () => undefined);
    answer(stream, headers).catch(() => stream.close());
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  return {
    address: `127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    /** What has come so far: actions by what the server has accepted. */
    seen,
    /** Sets the limit of actions a second. */
    limit: (perSecond: number) => void Object.assign(limit, { perSecond, left: perSecond }),
    async close() {
      upstream.destroy();
      for (const session of sessions) session.destroy();
      await new Promise((resolve) => proxy.close(resolve));
    },
  };
}

function refuse(stream: ServerHttp2Stream, code: number, message: string, type: string, value: Uint8Array) {
  const type_url = `type.googleapis.com/temporal.api.errordetails.v1.${type}`;
  const status = google.rpc.Status.encode({ code, message, details: [{ type_url, value }] }).finish();
  const headers = {
    'content-type': 'application/grpc',
    'grpc-status': String(code),
    'grpc-message': message,
    'grpc-status-details-bin': Buffer.from(status).toString('base64'),
  };
  if (!stream.destroyed) stream.respond(headers, { endStream: true });
}

/** All markers of a workflow task are one action. */
function actionsOf(call: string, body: Buffer): number {
  if (ACTIONS.has(call)) return 1;
  if (call !== 'RespondWorkflowTaskCompleted') return 0;
  const { commands } = RespondWorkflowTaskCompletedRequest.decode(body.subarray(PREFIX));
  const types = commands.map(({ commandType }) => commandType ?? 0);
  const marked = types.includes(CommandType.COMMAND_TYPE_RECORD_MARKER) ? 1 : 0;
  return marked + types.filter((type) => COMMANDS.has(type)).length;
}
