import { Connection, isGrpcServiceError } from '@temporalio/client';
import { CHANNEL, type TemporalTarget } from './temporal-target';

/** The gRPC status that a call to Temporal failed with, if that is what a fault is. */
export function grpcStatus(error: unknown): number | undefined {
  return isGrpcServiceError(error) ? error.code : undefined;
}

/** In gRPC's numbering. */
const DEADLINE_EXCEEDED = 4;
/** The deadline, permission denied, unavailable, unauthenticated. */
const UNREACHABLE = new Set([DEADLINE_EXCEEDED, 7, 14, 16]);

/**
 * Calls Temporal over a connection of its own, which is closed again.
 * @throws what `work` throws, unless Temporal cannot be reached.
 */
export async function overOwnConnection<T>(
  { connection: options }: TemporalTarget,
  deadlineMs: number,
  work: (connection: Connection) => Promise<T>,
): Promise<T | { readonly kind: 'unreachable'; readonly address: string; readonly why: string }> {
  const connection = Connection.lazy({ ...options, ...CHANNEL, connectTimeout: deadlineMs });
  try {
    return await work(connection);
  } catch (error) {
    const why = reasonOfAbsence(error, deadlineMs);
    if (why === null) throw error;
    return { kind: 'unreachable', address: options.address, why };
  } finally {
    await connection.close();
  }
}

/** Why Temporal cannot be reached; null for any other error. */
function reasonOfAbsence(error: unknown, deadlineMs: number): string | null {
  const cause = isGrpcServiceError(error) ? error : (error as { cause?: unknown } | null)?.cause;
  const code: number = isGrpcServiceError(cause) ? cause.code : 0;
  if (!isGrpcServiceError(cause) || !UNREACHABLE.has(code)) return null;
  // gRPC's own words for it are those of its inner states.
  return code === DEADLINE_EXCEEDED ? `no answer within ${deadlineMs / 1_000} s` : cause.details;
}
