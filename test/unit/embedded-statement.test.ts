import { describe, expect, it } from 'vitest'
import { readStatement, refuseForReader } from '../../clickhouse/embedded/statement.ts'

describe('readStatement', () => {
  it.each([
    ['SELECT 1', 'SELECT 1', ''],
    ['-- first\n/* x */ SELECT 1 ; -- bye\n', '-- first\n/* x */ SELECT 1', ''],
    ['SELECT 1 FORMAT JSON', 'SELECT 1 ', 'FORMAT JSON'],
    ["SELECT ';' AS a FORMAT CSV SETTINGS max_threads = 1;", "SELECT ';' AS a ", 'FORMAT CSV SETTINGS max_threads = 1'],
    ['SELECT format FROM t ORDER BY format DESC', 'SELECT format FROM t ORDER BY format DESC', ''],
    ["SELECT 'it''s \\'; FORMAT x' a", "SELECT 'it''s \\'; FORMAT x' a", ''],
    ['(SELECT 1) UNION ALL (SELECT 2)', '(SELECT 1) UNION ALL (SELECT 2)', ''],
  ])('splits %j before its output format', (sql, head, tail) => {
    expect(readStatement(sql)).toMatchObject({ kind: 'rows', head, tail })
  })

  it.each([
    ['INSERT INTO t (a, b) FORMAT JSONEachRow\n{"a":1}', 'INSERT INTO t (a, b) ', 'FORMAT JSONEachRow', '{"a":1}'],
    ['INSERT INTO t SETTINGS x=1 FORMAT CSV\n1;2', 'INSERT INTO t ', 'SETTINGS x=1 FORMAT CSV', '1;2'],
    ["INSERT INTO t VALUES ('a;b')", 'INSERT INTO t ', ' FORMAT Values', " ('a;b')"],
    ['INSERT INTO t', 'INSERT INTO t', ' FORMAT Values', ''],
  ])('splits %j into statement and data', (sql, head, tail, data) => {
    const statement = readStatement(sql)
    expect(statement).toMatchObject({ kind: 'insert', head, tail })
    expect(statement.kind === 'insert' && sql.slice(statement.dataStart)).toBe(data)
  })

  it.each(['CREATE TABLE t (a UInt8) ENGINE = Memory', 'INSERT INTO t SELECT 1', 'WITH 1 AS x INSERT INTO t SELECT x'])(
    'takes %j for a command',
    (sql) => expect(readStatement(`${sql};`)).toEqual({ kind: 'command', sql }),
  )

  it.each([
    ['SELECT 1; SELECT 2', 62],
    ['', 62],
    [' ; ', 62],
    ["SELECT 1 INTO OUTFILE '/tmp/x'", 36],
    ["INSERT INTO t FROM INFILE '/etc/passwd' FORMAT CSV", 36],
    ["INSERT INTO t SELECT a FROM input('a UInt8') FORMAT CSV", 48],
  ])('refuses %j with code %i', (sql, code) => {
    expect(() => readStatement(sql)).toThrow(expect.objectContaining({ code }))
  })

  it('reads a string literal of many megabytes', () => {
    expect(readStatement(`SELECT '${"x\\'".repeat(5_000_000)}'`)).toMatchObject({ kind: 'rows' })
  })
})

describe('refuseForReader', () => {
  it.each([
    'INSERT INTO t VALUES (1)',
    'SET readonly = 0',
    'KILL QUERY WHERE 1',
    'SYSTEM FLUSH LOGS',
    "SELECT file('/etc/passwd')",
    "SELECT `file` /* x */ ('/etc/passwd')",
    "DESCRIBE TABLE FILE('/etc/passwd')",
    "SELECT * FROM url('http://127.0.0.1/', CSV)",
  ])('refuses %j', (sql) => {
    expect(() => refuseForReader(sql)).toThrow(expect.objectContaining({ code: 164 }))
  })

  it.each(['(SELECT 1)', 'WITH 1 AS x SELECT x', "SELECT 'file(1)'", 'SELECT url FROM t', 'SHOW TABLES'])(
    'lets %j pass',
    (sql) => expect(() => refuseForReader(sql)).not.toThrow(),
  )
})
