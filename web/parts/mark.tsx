import { useStart } from '../clock.ts'
import { logos } from '../logos.ts'
import { theme } from '../theme.ts'

const toIcon = (id: string) => (logos === undefined ? `marks/${id}.svg` : `logos/${logos}/${id}`)

/** The icon of a token or DAO, served from this host: its logo, or letters if there is none. */
export const Mark = ({ id }: { id: string }) => (
  <img class="mark" src={toIcon(id)} alt="" width="24" height="24" loading="lazy" />
)

/**
 * A token's price over the last day, drawn by the service. A browser does not request an image with the same URL again,
 * so the fragment, which is not sent, changes with the day's range. Chromium shows the new image only with the next
 * change.
 */
export const Sparkline = ({ id, name }: { id: string; name: string }) => (
  <span class="spark">
    <img
      src={`charts/24h/${id}.svg?width=120&height=32&theme=${theme.value}#${useStart('24h', '5m')}`}
      alt={`Price of ${name} over the last 24 hours`}
      width="120"
      height="32"
      loading="lazy"
    />
  </span>
)
