import process from 'node:process'

/** `--quick` shows in a few minutes that every line can be measured. Its numbers mean nothing. */
export const quick = process.argv.includes('--quick')

export const turnsOf = (usual: number): number => (quick ? 1 : usual)
export const secondsOf = (usual: number): number => (quick ? Math.min(usual, 1) : usual)
