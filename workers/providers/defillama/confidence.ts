import { z } from 'zod'
import { orNull } from '../answer.ts'

/**
 * DefiLlama's prices of listed coins have a confidence of 0.99. Prices that it takes from pools have less, the shallower
 * the pools are. Below this a price may be anybody's invention, and counts as unknown.
 */
const LEAST_CONFIDENCE = 0.9

/** How sure DefiLlama is of a price, from 0 to 1. An answer that does not say has nothing against its price. */
const confidence = z.number().min(0).max(1)

export const isSure = (told: unknown): boolean => (orNull(confidence, told) ?? 1) >= LEAST_CONFIDENCE
