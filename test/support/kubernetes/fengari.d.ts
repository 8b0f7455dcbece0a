/** The parts of the Lua interpreter that the tests use; the package has no types. */
declare module 'fengari' {
  interface State {
    readonly state: unique symbol
  }
  const fengari: {
    readonly lua: {
      readonly LUA_OK: number
      lua_tojsstring(state: State, index: number): string
    }
    readonly lauxlib: {
      luaL_newstate(): State
      luaL_dostring(state: State, program: Uint8Array): number | boolean
    }
    readonly lualib: { luaL_openlibs(state: State): void }
    readonly to_luastring: (text: string) => Uint8Array
  }
  export default fengari
}
