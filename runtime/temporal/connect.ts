import { Connection, isGrpcServiceError } from '@temporalio/client';
import { CHANNEL, type TemporalTarget } from './temporal-target';

export function grpcStatus(error: unknown): number | undefined {
  return isGrpcServiceError(error) ? error.code : undefined;
}

const DEADLINE_EXCEEDED = 4;
export const noAnswerInTime = (error: unknown): boolean => grpcStatus(error) === DEADLINE_EXCEEDED;
const UNAVAILABLE = 14;
/** Permission denied, unauthenticated: Temporal Cloud answers so for a namespace that does not exist, too. */
const DENIED = new Set([7, 16]);
/** The same, and a missing namespace, in the words of servers and of the SDK's native part. */
const DENIED_TEXT =
  /does not have permission|valid authentication|PermissionDenied|Unauthenticated|Namespace \S+ (is|was) not found/;
const ADDRESS = 'TEMPORAL_ADDRESS';
const ACCESS =
  'TEMPORAL_NAMESPACE (prepare-temporal registers it, for Temporal Cloud tcld), and TEMPORAL_API_KEY or the client certificate';

export const accessDenied = (error: unknown): boolean =>
  DENIED.has(grpcStatus(error) ?? 0) || DENIED_TEXT.test(String(error));

/** What an error says, with the settings to check when Temporal denies access or has no such namespace. */
export function faultText(error: unknown): string {
  const said = error instanceof Error ? error.message : String(error);
  const text = isGrpcServiceError(error) ? error.details : said;
  return accessDenied(error) ? `${text}: check ${ACCESS}` : text;
}

/**
 * Calls Temporal over a connection of its own, and closes that.
 * @throws what `work` throws
 */
export async function withConnection<T>(
  { connection: options }: TemporalTarget,
  connectTimeoutMs: number,
  work: (connection: Connection) => Promise<T>,
): Promise<T> {
  const connection = Connection.lazy({ ...options, ...CHANNEL, connectTimeout: connectTimeoutMs });
  try {
    return await work(connection);
  } finally {
    await connection.close();
  }
}

/** Why an error means that Temporal is away or denies access, and which settings decide it; null: it means neither. */
export function reasonOfAbsence(error: unknown, deadlineMs: number) {
  const cause = isGrpcServiceError(error) ? error : (error as { cause?: unknown } | null)?.cause;
  if (!isGrpcServiceError(cause)) return null;
  const { details } = cause;
  const code: number = cause.code;
  if (DENIED.has(code)) return { why: details, check: ACCESS };
  // gRPC describes a missed deadline by its internal states.
  if (code === DEADLINE_EXCEEDED) return { why: `no answer within ${deadlineMs / 1_000} s`, check: ADDRESS };
  return code === UNAVAILABLE ? { why: details, check: ADDRESS } : null;
}
