/** What is wrong with a tool's arguments, in words that say what to give instead. */
export class Mistake extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'Mistake'
  }
}
