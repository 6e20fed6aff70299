import { z } from 'zod'
import { orNull } from '../answer.ts'

/**
 * DefiLlama's prices of listed coins have a confidence of 0.99. Prices derived from pools have less, depending on the
 * depth of the pools. A price below this limit may be manipulated, and counts as unknown.
 */
const LEAST_CONFIDENCE = 0.9

/** DefiLlama's confidence in a price, from 0 to 1. A price without a confidence is accepted. */
const confidence = z.number().min(0).max(1)

export const isSure = (value: unknown): boolean => (orNull(confidence, value) ?? 1) >= LEAST_CONFIDENCE
