import { useStart } from '../clock.ts'
import { theme } from '../theme.ts'

/** The mark of a token or a DAO, of this host alone. */
export const Mark = ({ id }: { id: string }) => (
  <img class="mark" src={`marks/${id}.svg`} alt="" width="24" height="24" loading="lazy" />
)

/**
 * A token's price over the last day, as the service draws it. A browser does not ask again for an image of the same
 * address: the fragment, which is not sent, moves on with the day. Chromium shows what it gets then with the next one.
 */
export const Sparkline = ({ id, name }: { id: string; name: string }) => (
  <img
    src={`charts/24h/${id}.svg?width=120&height=32&theme=${theme.value}#${useStart('24h', '5m')}`}
    alt={`Price of ${name} over the last 24 hours`}
    width="120"
    height="32"
    loading="lazy"
  />
)
