import { z } from 'zod'
import { datasets } from '../datasets/list.ts'

const NAMES = datasets.map(({ name }) => name)

/** Names of datasets, with commas between. */
export const datasetNames = z
  .string()
  .transform((list) => list.split(',').map((name) => name.trim()))
  .superRefine((list, context) => {
    const unknown = list.filter((name) => !NAMES.some((known) => known === name))
    if (unknown.length === 0) return
    const message = `no dataset is called ${unknown.join(', ')}; there are ${NAMES.join(', ')}`
    context.addIssue({ code: 'custom', message })
  })

/** Whether something that is named like a dataset is collected. */
export const isOn = ({ name }: { readonly name: string }, off: readonly string[]): boolean => !off.includes(name)

/** Those of some things, named like datasets, that are collected. */
export const withoutOff = <T extends { readonly name: string }>(all: readonly T[], off: readonly string[]): T[] =>
  all.filter((one) => isOn(one, off))
