import type net from 'node:net';

/** Types of messages from the server that end, or decide, the start of a session. */
const PARAMETER_STATUS = 'S';
const ERROR_RESPONSE = 'E';
const READY_FOR_QUERY = 'Z';
/** A server that is starting, stopping or recovering. */
const CANNOT_CONNECT_NOW = '57P03';

/** Sent to every client as its session starts, since Postgres 14; `on` means that nothing can be written. */
const READ_ONLY = { in_hot_standby: 'is a standby', default_transaction_read_only: 'is read-only' } as const;

interface StartupWatch {
  /** Whether a server that takes no writes will not do. */
  readonly leaderOnly: boolean;
  /** Called with null once the session is ready, else with why the server will not do. */
  readonly decide: (fault: string | null) => void;
}

/**
 * Reads what a server sends until its session is ready. The message by which it shows that it will not do is held back from the
 * listeners of the socket.
 */
export function watchStartup<Socket extends net.Socket>(
  socket: Socket,
  { leaderOnly, decide }: StartupWatch,
): Socket {
  const emit = socket.emit.bind(socket) as (name: string | symbol, ...args: unknown[]) => boolean;
  let pending: Buffer | null = Buffer.alloc(0);
  const end = (fault: string | null) => {
    pending = null;
    decide(fault);
  };
  socket.emit = (name: string | symbol, ...args: unknown[]) => {
    if (pending === null) return emit(name, ...args);
    if (name === 'close') end('closed the connection');
    if (name !== 'data') return emit(name, ...args);
    pending = Buffer.concat([pending, args[0] as Buffer]);
    while (pending.length > 4 && pending.length > pending.readUInt32BE(1)) {
      const length = pending.readUInt32BE(1) + 1;
      const fault = faultOf(pending.subarray(0, length), leaderOnly);
      if (fault !== undefined) {
        end(fault);
        return fault === null ? emit(name, ...args) : true;
      }
      pending = pending.subarray(length);
    }
    return emit(name, ...args);
  };
  return socket;
}

/** Of one message; undefined when it decides nothing, null for a session that is ready. */
function faultOf(message: Buffer, leaderOnly: boolean): string | null | undefined {
  const type = String.fromCharCode(message[0] ?? 0);
  if (type === READY_FOR_QUERY) return null;
  const fields = message.subarray(5).toString('latin1').split('\0');
  if (type === PARAMETER_STATUS && leaderOnly && fields[1] === 'on')
    return READ_ONLY[fields[0] as keyof typeof READ_ONLY];
  if (type === ERROR_RESPONSE && fields.includes(`C${CANNOT_CONNECT_NOW}`)) return 'takes no connections now';
  return undefined;
}
