/** Functions of SQLite and PostgreSQL that compute something from their arguments, and do and reveal nothing else. */
export const pureFunctions: ReadonlySet<string> = new Set(
  `abs age avg cast ceil ceiling char_length coalesce concat concat_ws count cume_dist date date_part date_trunc datetime
  dense_rank extract first_value floor greatest group_concat ifnull iif initcap instr julianday lag last_value lead least
  left length lower ltrim max min mod now nth_value ntile nullif percent_rank position rank replace right round row_number
  rtrim sign split_part strftime string_agg strpos substr substring sum time to_char to_date to_timestamp total trim unixepoch
  upper`.split(/\s+/),
)

/** Functions with a `from` among their arguments. */
export const fromWithin: ReadonlySet<string> = new Set(['extract', 'substring', 'trim'])

/** Words that may stand before a parenthesis without calling a function. */
export const beforeParenthesis: ReadonlySet<string> = new Set(
  `all and any as between by case char decimal distinct else exists filter having ilike in like limit not numeric offset on
  or over select some then using varchar when where escape`.split(/\s+/),
)

/** Words that are no part of a statement that only reads views, or that read something that is not named in a `from`. */
export const refusedWords: ReadonlySet<string> = new Set(
  'into values table recursive lateral tablesample insert update delete returning pragma attach'.split(' '),
)

export const setOperators: ReadonlySet<string> = new Set(['union', 'intersect', 'except'])

/** What ends a list of tables. */
export const clauses: ReadonlySet<string> = new Set([
  ...setOperators,
  ...'where group having order limit offset fetch window'.split(' '),
])

export const joinWords: ReadonlySet<string> = new Set('natural left right full inner cross outer join'.split(' '))

/** Words that end an expression, and so are not the name of a column. */
export const valueWords: ReadonlySet<string> = new Set(['end', 'null', 'true', 'false', 'unknown', 'all', 'distinct'])
