import { z } from 'zod'
import { tokenPrices } from '../../../shared/datasets/token-prices.ts'
import { oneId } from '../../parameters/kinds.ts'
import { readDay } from '../../prices/day.ts'
import { Problem } from '../../problem/problem.ts'
import { defineRoute } from '../../route/define-route.ts'
import { tokenKind } from '../../route/entities.ts'
import { THEME_NAMES, toSparkline } from '../../svg/sparkline.ts'

const pixels = (what: string, bounds: { min: number; max: number; usual: number }) => {
  const rule = `must be a whole number, at least ${bounds.min} and at most ${bounds.max}`
  return z
    .int(rule)
    .min(bounds.min, rule)
    .max(bounds.max, rule)
    .default(bounds.usual)
    .meta({
      description: `${what} of the image in pixels, from ${bounds.min} to ${bounds.max}.`,
      examples: [bounds.usual],
    })
}

export const chart24hRoute = defineRoute({
  operation: 'getTokenChart',
  path: '/charts/24h/{tokenId}.svg',
  tag: 'Charts',
  summary: 'The price of a token over the last 24 hours as an image',
  description:
    'The image behind `chart24h` of a token. Its colour follows `percentChange24h`, or the line itself if that is null. A gap in the line is a time without data.',
  query: {
    tokenId: oneId(tokenKind.noun, tokenKind.example.id),
    width: pixels('Width', { min: 40, max: 2000, usual: 240 }),
    height: pixels('Height', { min: 16, max: 1000, usual: 64 }),
    theme: z
      .enum(THEME_NAMES, `must be one of ${THEME_NAMES.join(', ')}`)
      .default('light')
      .meta({ description: 'Background of the image: light or dark.', examples: ['dark'] }),
  },
  response: z.string().describe('The image as SVG.'),
  contentType: 'image/svg+xml',
  datasets: [tokenPrices],
  handle: async ({ query, db, registry, now }) => {
    const token = tokenKind.byId(registry, query.tokenId)
    if (token === undefined) throw new Problem('not_found', 'No token has this id.', { param: 'tokenId' })
    const day = await readDay(db, token, now())
    return {
      body: Buffer.from(toSparkline(token.name, day, query)),
      asOf: day.points.at(-1)?.at ?? null,
      expiresAt: day.range.to,
    }
  },
})
