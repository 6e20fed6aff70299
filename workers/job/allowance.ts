/** How many pages a run may still ask for; shared by all its entities. */
export interface Allowance {
  /** How many there are, 0 where none is left. */
  left(): number
  /** Takes one page; false when there is none left. */
  take(): boolean
}

export function createAllowance(pages: number): Allowance {
  let left = pages
  return {
    left: () => Math.max(0, left),
    take() {
      left -= 1
      return left >= 0
    },
  }
}
