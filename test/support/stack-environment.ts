import { checkPorts, freeLowPorts, stackPorts } from '../../dev/ports';
import { succeeds } from '../../testbed/until';

/** Settings of an embedded stack that gets in nobody's way. */
export async function stackEnvironment(dataDir: string): Promise<Record<string, string>> {
  const [api, internal] = await freeLowPorts(2);
  return {
    DATA_DIR: dataDir,
    API_PORT: String(api),
    INTERNAL_PORT: String(internal),
    STACK_PORT: String(await freeStackPort()),
  };
}

async function freeStackPort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 11_000);
    const host = '127.0.0.1';
    const wanted = Object.values(stackPorts(port)).map((each) => ({ setting: '', host, port: each }));
    if (await succeeds(checkPorts(wanted))) return port;
  }
}
