/**
 * `npm run test:kubernetes`: the chart in a cluster, by the commands of docs/operations/kubernetes.md. Run by cluster.sh, in the network of a partner
 * outside. Options: test/support/steps.ts.
 */
import { runSteps } from '../support/steps';
import { Cluster, newFigures } from './cluster';
import { installs, policies, serves } from './install';
import { builds, crowded, drains, kills, mistakes, nodeLost, releases, uninstalls } from './life';

void runSteps(
  __filename,
  [
    ['from an empty cluster to the first webhook, by the commands of the page', installs],
    ['answers a quote', serves],
    ['network policies let through what they should, and nothing else', policies],
    ['a release loses nothing, and its pods stand on different nodes', releases],
    [
      'the way back has room on one node alone; a release waits where there is none, and is spread when there is more',
      crowded,
    ],
    ['each node is drained in turn, and nothing is lost', drains],
    ['kill -9 of each pod loses nothing', kills],
    [
      'a wrong secret, a missing image and a failing migration leave the old pods alone; workers are not ready without the inside of Temporal',
      mistakes,
    ],
    [
      'workers of two builds run side by side, deliveries move from one to the next, API pods become more and fewer',
      builds,
    ],
    ['a lost node costs what the page says', nodeLost],
    ['uninstall leaves nothing', uninstalls],
  ],
  { project: new Cluster(), figures: newFigures() },
  'kubectl get pods -A -o wide; kubectl get events -A --sort-by=.lastTimestamp | tail -40; helm list -a',
);
