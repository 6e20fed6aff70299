import { createNoDatabase } from '../../shared/store/store.ts'

/** A database whose methods throw, for code that must not use one. */
export const noDatabase = createNoDatabase('this test has no database')
