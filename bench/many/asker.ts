import { serveMessages } from '../harness/children';
import { load } from '../harness/load';

/** Asks one API process for quotes, in a process of its own. */
serveMessages(load, async () => undefined);
