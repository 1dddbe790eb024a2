import { NativeConnection, type NativeConnectionOptions } from '@temporalio/worker';

/**
 * Opens a worker's connection.
 * @throws with the address and with what we showed: a server that demands a certificate ends the connection without a word.
 */
export async function openNativeConnection(options: NativeConnectionOptions): Promise<NativeConnection> {
  try {
    return await NativeConnection.connect(options);
  } catch (error) {
    const { message } = error as Error;
    throw new Error(`no connection to Temporal at ${options.address} ${protection(options)}: ${message}`, {
      cause: error,
    });
  }
}

function protection({ tls, apiKey }: NativeConnectionOptions): string {
  if (apiKey !== undefined) return 'with an API key';
  if (tls === undefined || tls === null || tls === false) return 'without TLS';
  const certificate = tls !== true && tls.clientCertPair !== undefined;
  return `with TLS and ${certificate ? 'a' : 'no'} client certificate`;
}
