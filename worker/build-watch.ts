import type { Client } from '@temporalio/client';
import { startLoop } from '../timing/loop';
import { withTimeout } from '../timing/timeout';

/** How often Temporal is asked. */
const WATCH_EVERY_MS = 2_000;
/** An answer is good for so long after it was asked for; two may go missing in between. */
const ANSWER_VALID_MS = 5_000;
const ASK_MS = 1_500;

export interface Build {
  readonly deploymentName: string;
  readonly buildId: string;
}

interface BuildWatchDeps {
  readonly client: Client;
  readonly taskQueue: string;
  /** What this process runs; null: it takes no part in versioning. */
  readonly build: Build | null;
  readonly monotonicMs: () => number;
  /** Of several failures in a row the first. */
  readonly onError: (error: unknown) => void;
}

/** What a worker process knows of its own build. */
export interface BuildWatch {
  /**
   * Whether deliveries are started here: only by the build that is current, so that what they are told fits the code that
   * reads it. While Temporal does not answer, its last word counts.
   */
  current(): boolean;
  /**
   * Whether a first workflow task may be asked for here: this build is current, no other is announced or ramping, and
   * both were so less than five seconds ago. The server does not look at builds when it hands out such a task.
   */
  eager(): boolean;
  /** Calls it with the first answer, and whenever that changes. */
  onChange(listener: (current: boolean) => void): void;
  stop(): Promise<void>;
}

/** Asks Temporal every two seconds which build gets the tasks of this queue. */
export function watchBuild(deps: BuildWatchDeps): BuildWatch {
  const { client, taskQueue, build, monotonicMs } = deps;
  let answer: { readonly current: boolean; readonly alone: boolean; readonly askedAt: number } | null = null;
  let failing = false;
  const listeners = new Set<(current: boolean) => void>();

  async function ask(): Promise<void> {
    const askedAt = monotonicMs();
    const { versioningInfo: routing } = await withTimeout(
      client.withDeadline(Date.now() + ASK_MS, () =>
        client.workflowService.describeTaskQueue({
          namespace: client.options.namespace,
          taskQueue: { name: taskQueue },
        }),
      ),
      ASK_MS,
      'Temporal',
    );
    const named = routing?.currentDeploymentVersion;
    const current =
      build === null
        ? !named?.buildId
        : named?.buildId === build.buildId && named.deploymentName === build.deploymentName;
    const alone = !routing?.rampingDeploymentVersion && !routing?.rampingVersionPercentage;
    failing = false;
    const before = answer;
    answer = { current, alone, askedAt };
    if (before?.current !== current) for (const listener of listeners) listener(current);
  }

  const loop = startLoop({
    round: ask,
    everyMs: WATCH_EVERY_MS,
    onError(error) {
      if (!failing) deps.onError(error);
      failing = true;
    },
  });

  return {
    // Without versioning there is nobody else, until Temporal says otherwise.
    current: () => answer?.current ?? build === null,
    eager: () =>
      answer !== null && answer.current && answer.alone && monotonicMs() - answer.askedAt < ANSWER_VALID_MS,
    onChange: (listener) => void listeners.add(listener),
    stop: () => loop.stop(),
  };
}
