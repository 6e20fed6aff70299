import { runCommand } from '../../shared/command.ts'
import { readCommandLine } from '../../shared/command-line.ts'
import { loadConfig } from '../../shared/config/config.ts'
import { isMain } from '../../shared/process.ts'
import { createParts } from '../../shared/progress-bar.ts'
import { loadRegistry } from '../../shared/registry/registry.ts'
import { createLog } from '../../shared/telemetry/log.ts'
import { createHttpClients } from '../http/client.ts'
import { fetchLogos } from '../logos/fetch-logos.ts'

const HELP = `npm run logos -- [options]

Fetches the logos of the registry's tokens from CoinGecko into DATA_DIR/logos, as PNG, JPEG or WebP images of at most 64 kB.
attribution.json there names the source of each. Stored logos are not fetched again. The API serves them after its next
start, and the page shows them instead of letters. Check first that you may show the logos: they are trademarks of their
owners. Exits with 3 if an image was rejected.

  --again  also fetches stored logos
  --help`

const EXIT_REJECTED = 3

async function main(): Promise<void> {
  const { values } = readCommandLine({
    options: { again: { type: 'boolean', default: false }, help: { type: 'boolean', default: false } },
  })
  if (values.help) return console.log(HELP)
  const config = loadConfig()
  const http = createHttpClients({ log: createLog('logos', 'error'), proxy: config.proxy })
  const { folder, stored, unchanged, without, rejected } = await fetchLogos({
    ...{ config, http, registry: loadRegistry(), again: values.again },
    ...{ signal: new AbortController().signal, onPart: createParts('logos') },
  })
  for (const reason of rejected) console.error(`rejected: ${reason}`)
  console.log(
    `${folder}: ${stored} stored, ${unchanged} unchanged, ${without} without a logo, ${rejected.length} rejected`,
  )
  if (rejected.length > 0) process.exitCode = EXIT_REJECTED
}

if (isMain(import.meta.url)) runCommand(main)
