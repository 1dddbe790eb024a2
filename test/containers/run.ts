/**
 * `npm run test:containers`: production as docker-compose.yml and the handbook have it, in a real container engine. Run by engine.sh, in the network
 * of a partner outside. Options: test/support/steps.ts.
 */
import { runSteps } from '../support/steps';
import { certificates, monitoring } from './care';
import { guarded, network } from './boundaries';
import {
  kills,
  restartOfTheEngine,
  rollingRestart,
  stops,
  temporalLost,
  temporalUpgrade,
} from './interruptions';
import { Project } from './project';
import { restores } from './restores';
import { firstDay, installs } from './start';
import { modelled, newFigures } from './scene';

void runSteps(
  __filename,
  [
    ['starts from nothing by the commands of the page', installs],
    ['every container is guarded and bounded as the file says', guarded],
    ['answers a quote, delivers to a partner outside, opens an application for a lender', firstDay],
    ['ports are open and closed as the page says', network],
    ['a rolling restart to another release and back loses nothing', rollingRestart],
    ['another Temporal takes over', temporalUpgrade],
    ['a Temporal that lost its databases is set up anew', temporalLost],
    ['kill -9 of every container loses nothing', kills],
    ['stops in order', stops],
    ['starts again with the engine', restartOfTheEngine],
    ['certificates are renewed', certificates],
    ['every change of a delivery is one of the model', modelled],
    ['a backup is restored to a moment, and from its dump', restores],
    ['the monitoring sees everything', monitoring],
  ],
  { project: new Project(), figures: newFigures() },
  'docker compose ps --all; docker compose logs --tail 15',
);
