import { Connection, isGrpcServiceError } from '@temporalio/client';
import { CHANNEL, type TemporalTarget } from './temporal-target';

export function grpcStatus(error: unknown): number | undefined {
  return isGrpcServiceError(error) ? error.code : undefined;
}

const DEADLINE_EXCEEDED = 4;
/** Deadline, permission denied, unavailable, unauthenticated. */
const UNREACHABLE = new Set([DEADLINE_EXCEEDED, 7, 14, 16]);

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

export function reasonOfAbsence(error: unknown, deadlineMs: number): string | null {
  const cause = isGrpcServiceError(error) ? error : (error as { cause?: unknown } | null)?.cause;
  if (!isGrpcServiceError(cause) || !UNREACHABLE.has(cause.code)) return null;
  // gRPC describes a missed deadline by its internal states.
  return grpcStatus(cause) === DEADLINE_EXCEEDED ? `no answer within ${deadlineMs / 1_000} s` : cause.details;
}
