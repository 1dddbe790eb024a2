import { isGrpcServiceError } from '@temporalio/client';

/** In gRPC's numbering. */
const DEADLINE_EXCEEDED = 4;
/** The deadline, permission denied, unavailable, unauthenticated. */
const UNREACHABLE = new Set([DEADLINE_EXCEEDED, 7, 14, 16]);

/**
 * Why Temporal cannot be reached; null for any other error.
 * @param deadlineMs what the caller had given it.
 */
export function reasonOfAbsence(error: unknown, deadlineMs: number): string | null {
  const cause = isGrpcServiceError(error) ? error : (error as { cause?: unknown } | null)?.cause;
  const code: number = isGrpcServiceError(cause) ? cause.code : 0;
  if (!isGrpcServiceError(cause) || !UNREACHABLE.has(code)) return null;
  // gRPC's own words for it are those of its inner states.
  return code === DEADLINE_EXCEEDED ? `no answer within ${deadlineMs / 1_000} s` : cause.details;
}
