// While a story is told the page shows it as it goes; without this script, after a reload.
const PARTS = ['story', 'log', 'deliveries', 'behaviour'];
/** Each look costs one of the 100 calls a minute that the partner's key has. */
const LOOK_MS = 3_000;

async function refresh() {
  try {
    const page = new DOMParser().parseFromString(await (await fetch('/')).text(), 'text/html');
    for (const id of PARTS) {
      const [now, next] = [document.getElementById(id), page.getElementById(id)];
      // A part in which somebody is reading or typing stays.
      const busy = now.contains(document.activeElement) || now.querySelector('details[open]') !== null;
      if (next !== null && now.innerHTML !== next.innerHTML && !(busy && id !== 'story'))
        now.replaceWith(next);
    }
  } catch {
    // The stack is stopping, or starts again: the next look will tell.
  }
  setTimeout(refresh, LOOK_MS);
}

setTimeout(refresh, LOOK_MS);
