export type Urgency = 'good' | 'waiting' | 'bad'

export interface Countdown {
  /** `1:04:09` or `4:09`; `0:00` after the end. */
  readonly text: string
  /** The remaining share, 0 to 100. */
  readonly percent: number
  readonly urgency: Urgency
  readonly isOver: boolean
}

const urgentMillis = 60_000

/** The remaining lifetime, between the time of issue and the expiry. */
export function countdown(now: number, ends: number, began: number | undefined): Countdown {
  const left = Math.max(0, ends - now)
  const whole = began === undefined || began >= ends ? left : ends - began
  const share = whole === 0 ? 0 : Math.min(1, left / whole)
  const isUrgent = left <= Math.min(urgentMillis, whole * 0.25)
  return {
    text: clockText(Math.ceil(left / 1000)),
    percent: Math.round(share * 100),
    urgency: left === 0 ? 'bad' : isUrgent ? 'waiting' : 'good',
    isOver: left === 0,
  }
}

function clockText(seconds: number): string {
  const two = (value: number): string => String(value).padStart(2, '0')
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60]
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`
}
