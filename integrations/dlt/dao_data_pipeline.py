"""Loads dao-data into DuckDB with dlt: `python dao_data_pipeline.py`. The configuration is data; dlt is imported to run it."""

import os

BASE_URL = os.environ.get("DAO_DATA_URL", "http://127.0.0.1:3000")


def all_pages(path, limit, **params):
    """A list: each page names the next one in its `Link` header."""
    return {"path": path, "params": {"limit": limit, **params}, "paginator": {"type": "header_link"}}


def one_answer(path, **params):
    return {"path": path, "params": params, "paginator": {"type": "single_page"}}


CONFIG = {
    "client": {"base_url": BASE_URL},
    "resource_defaults": {"primary_key": "_id", "write_disposition": "replace"},
    "resources": [
        {"name": "tokens", "endpoint": all_pages("/data/tokens", 500, sort="name")},
        {"name": "daos", "endpoint": all_pages("/data/daos", 500, sort="name")},
        {"name": "treasuries", "endpoint": all_pages("/data/daos/treasury", 500, sort="name")},
        {"name": "fees", "endpoint": all_pages("/data/daos/fees", 500, sort="name")},
        {"name": "governance", "endpoint": all_pages("/data/daos/governance/summary", 500, sort="name")},
        {
            # The proposals of each DAO; a DAO without a space answers 404.
            "name": "proposals",
            "endpoint": {
                **all_pages("/data/daos/governance/proposals", 1000),
                "params": {"limit": 1000, "id": "{resources.governance._id}"},
                "response_actions": [{"status_code": 404, "action": "ignore"}],
            },
        },
        {
            "name": "market_cap",
            "primary_key": "recordedAt",
            "endpoint": one_answer("/data/aggregated/market-cap", interval="1d"),
        },
        {
            "name": "alerts",
            "write_disposition": "append",
            "endpoint": {
                **all_pages("/data/alerts", 1000),
                "params": {"limit": 1000, "start": "{incremental.start_value}"},
                "incremental": {"cursor_path": "firedAt", "initial_value": "2022-01-01T00:00:00Z"},
            },
        },
    ],
}


def main():
    import dlt
    from dlt.sources.rest_api import rest_api_source

    pipeline = dlt.pipeline(pipeline_name="dao_data", destination="duckdb", dataset_name="dao_data")
    print(pipeline.run(rest_api_source(CONFIG)))


if __name__ == "__main__":
    main()
