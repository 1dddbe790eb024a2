import { isGrpcServiceError, type ConnectionLike } from '@temporalio/client';

const CALL_TIMEOUT_MS = 5_000;

/** Makes one call to Temporal's API. @throws what it throws, and after 5 s that the deadline has passed. */
export async function inTime<T>(connection: ConnectionLike, call: () => Promise<T>): Promise<T> {
  return connection.withDeadline(Date.now() + CALL_TIMEOUT_MS, call);
}

/** The gRPC status that a call failed with, if that is what a fault is. */
export function grpcStatus(error: unknown): number | undefined {
  return isGrpcServiceError(error) ? error.code : undefined;
}
