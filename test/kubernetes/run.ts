/**
 * `npm run test:kubernetes`: the chart in a cluster, by the commands of docs/operations/kubernetes.md. Run by cluster.sh, in the network of a partner
 * outside. Options: test/support/steps.ts.
 */
import { startOutside } from '../containers/partner';
import { runSteps } from '../support/steps';
import { Cluster, newFigures } from './cluster';
import { installs, policies, serves } from './install';
import { crowded, drains, kills, mistakes, nodeLost, releases, uninstalls } from './life';

const run = async () =>
  runSteps(
    __filename,
    [
      ['from an empty cluster to the first webhook, by the commands of the page', installs],
      ['answers a quote', serves],
      ['network policies let through what they should, and nothing else', policies],
      ['a release and its rollback lose nothing, and pods stand on different nodes', releases],
      ['a release has room on one node alone, and is spread when there is more', crowded],
      ['each node is drained in turn, and nothing is lost', drains],
      ['kill -9 of each pod loses nothing', kills],
      ['a wrong secret, a missing image and a failing migration leave the old pods alone', mistakes],
      ['a lost node costs what the page says', nodeLost],
      ['uninstall leaves nothing', uninstalls],
    ],
    {
      project: new Cluster(),
      outside: await startOutside(),
      credentials: { key: '', serviceKey: '' },
      answered: [],
      figures: newFigures(),
    },
    'kubectl get pods -A -o wide; kubectl get events -A --sort-by=.lastTimestamp | tail -40; helm list -a',
  );

run().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
