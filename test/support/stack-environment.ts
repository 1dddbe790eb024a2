import { freeLowPorts } from '../../dev/free-port';

const PORTS = ['API', 'INTERNAL', 'POSTGRES', 'TEMPORAL', 'TEMPORAL_UI', 'RECEIVER', 'SHOP'] as const;

/** Settings of an embedded stack that gets in nobody's way. */
export async function stackEnvironment(dataDir: string): Promise<Record<string, string>> {
  const free = await freeLowPorts(PORTS.length);
  return {
    DATA_DIR: dataDir,
    ...Object.fromEntries(PORTS.map((name, at) => [`${name}_PORT`, String(free[at])])),
    TOOLS_DIR: process.env['TOOLS_DIR'] ?? '',
  };
}
