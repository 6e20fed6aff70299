import { signal } from '@preact/signals'

/** Unix milliseconds, to half a minute: what says how long ago something was moves with it. */
export const now = signal(Date.now())
setInterval(() => {
  now.value = Date.now()
}, 30_000)
