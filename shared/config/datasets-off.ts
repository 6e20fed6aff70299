import { z } from 'zod'
import { datasets } from '../datasets/list.ts'

const NAMES = datasets.map(({ name }) => name)

/** A comma-separated list of dataset names. */
export const datasetNames = z
  .string()
  .transform((list) => list.split(',').map((name) => name.trim()))
  .superRefine((list, context) => {
    const unknown = list.filter((name) => !NAMES.some((dataset) => dataset === name))
    if (unknown.length === 0) return
    const message = `unknown dataset ${unknown.join(', ')}; the datasets are ${NAMES.join(', ')}`
    context.addIssue({ code: 'custom', message })
  })

/** Whether the dataset is collected. */
export const isOn = ({ name }: { readonly name: string }, off: readonly string[]): boolean => !off.includes(name)

/** Returns the items whose dataset is collected. */
export const withoutOff = <T extends { readonly name: string }>(all: readonly T[], off: readonly string[]): T[] =>
  all.filter((one) => isOn(one, off))
