import { z } from 'zod'

/** A rate limit: `requests` per `seconds`. */
export interface Allowance {
  readonly requests: number
  readonly seconds: number
}

const WRITTEN = /^(\d{1,9})\/(\d{1,6})$/

/** `600/60` is 600 requests in 60 seconds. */
export const allowance = z
  .string()
  .regex(WRITTEN, 'must be requests and seconds, such as 600/60')
  .transform((text): Allowance => {
    const [, requests, seconds] = WRITTEN.exec(text) ?? []
    return { requests: Number(requests), seconds: Number(seconds) }
  })
  .refine(({ requests, seconds }) => requests > 0 && seconds > 0, 'must not have a 0')
