import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findTemporal, startTemporal, type RunningTemporal } from '../../dev/temporal';
import { findTimeSkippingServer } from './time-skipping';
import { workflowCode } from '../../runtime/temporal/workflow-code';
import { emitWorkflows } from '../../testbed/emitted';
import { withTemporal } from '../../testbed/own-temporal';
import { freePort } from '../../dev/ports';

/** What globalSetup offers to the test files that ask. */
export type SharedTemporal = Pick<RunningTemporal, 'address' | 'namespace'>;
export interface SharedBundle {
  readonly codePath: string;
}

const workflows = join(__dirname, '..', '..', 'workflows');
const say = (text: string) => process.stderr.write(`Temporal for tests: ${text}\n`);

/** The run's dev server, its workflow bundle and its time-skipping program, each made when first asked for. */
export function temporalOfRun(directory: string) {
  let server: RunningTemporal | undefined;
  return {
    starters: {
      temporal: async (): Promise<SharedTemporal> => {
        const executable = await findTemporal({ onProgress: say });
        const dataDir = join(directory, 'temporal');
        const port = await freePort();
        server = await startTemporal({ executable, dataDir, port, uiPort: null, sync: false });
        return { address: server.address, namespace: server.namespace };
      },
      bundle: async (): Promise<SharedBundle> => {
        if (!existsSync(workflows)) throw new Error(`there are no workflows to bundle (${workflows})`);
        // Loading webpack takes a second, which most runs need not spend.
        const { bundleWorkflowCode } = await import('@temporalio/worker');
        const { code } = await bundleWorkflowCode(workflowCode(workflows));
        const codePath = join(directory, 'workflow-bundle.js');
        await writeFile(codePath, code);
        return { codePath };
      },
      'time-skipping': async () => ({
        executable: await findTimeSkippingServer({ directory, onProgress: say }),
      }),
    },
    async emit(): Promise<void> {
      if (server !== undefined) await withTemporal(server, emitWorkflows);
    },
    stop: async () => {
      await server?.stop();
    },
  };
}
