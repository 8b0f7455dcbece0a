/** The time, passed in rather than read, so that tests decide what time it is. */
export type Clock = () => Date

export const systemClock: Clock = () => new Date()
