/** An item of a list that a person chooses from. */
export interface ListItem {
  /** What is shown. */
  readonly name: string
  readonly value: string
  /** Its place in the order, from 0. */
  readonly num: number
}

/** How a field is shown: one line, several lines, one line with suggestions, a choice. */
export type FormAttributeType = 'text' | 'text-area' | 'text-list' | 'list'

/** One field of a form, as the registration page and the profile page get it. */
export interface FormAttributeView {
  readonly name: string
  readonly displayName: string
  readonly readOnly: boolean
  readonly required: boolean
  /** RE2 syntax; the whole value has to match. */
  readonly regEx?: string
  readonly regExFailedMsg?: string
  /** 0: no limit. */
  readonly minChars: number
  /** 0: no limit. */
  readonly maxChars: number
  readonly unique: boolean
  readonly type: FormAttributeType
  /** What may be chosen; empty where anything may be typed, or where the list has to be searched. */
  readonly values: readonly ListItem[]
  readonly show: boolean
}
